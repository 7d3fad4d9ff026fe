# SPDX-License-Identifier: Apache-2.0
"""A script of the page: shows a banner while the server does not answer. viser only greys the controls."""

from __future__ import annotations

# Any answer will do, also that there is no such file.
WATCH_SERVER = """
(() => {
    if (window.quadDynamicsWatch) return;
    const box = document.createElement('div');
    box.textContent = 'Connection to viewer_node lost. The page resumes when it is back.';
    box.style = 'position:fixed;top:14px;left:50%;transform:translateX(-50%);z-index:9999;display:none;' +
        'padding:10px 18px;background:#e03131;color:white;border-radius:4px;font:600 15px sans-serif';
    document.body.appendChild(box);
    window.quadDynamicsWatch = setInterval(async () => {
        try {
            await fetch('/alive', {cache: 'no-store', signal: AbortSignal.timeout(3000)});
            box.style.display = 'none';
        } catch { box.style.display = 'block'; }
    }, 2000);
})()
"""
