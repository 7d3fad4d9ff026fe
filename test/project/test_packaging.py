# SPDX-License-Identifier: Apache-2.0
"""The package installs with colcon and with pip, its metadata agree, its locks are complete and portable."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fresh_clone import clone_source

ROOT = Path(__file__).resolve().parents[2]
NAME = 'quad_dynamics'
LOCKS = sorted((ROOT / 'requirements').glob('*.txt'))
# Installed packages run for the first time compile their kernels; this is far more than that takes.
TIMEOUT_S = 300.0

SITE_PACKAGES = f'lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages'

# Packages that no registry has, or that come with rclpy.
ONLY_IN_ROS = {
    'launch', 'launch_ros', 'rcl_interfaces', 'robot_state_publisher', 'ros2launch', 'rviz2', 'tf2_msgs'
}  # fmt: skip

COMPUTE = """
import numpy as np
import quad_dynamics as qd
model = qd.load_model('mini_cheetah')
M = qd.mass_matrix(model, model.neutral)
assert M.shape == (model.nv, model.nv)
assert np.isclose(M[0, 0], model.total_mass)
"""


def requirement_names(file: Path) -> set[str]:
    """Names of the requirements in a `.in` file, without versions and without what it includes."""
    lines = [line.split('#')[0].strip() for line in file.read_text().splitlines()]
    return {re.split(r'[<>=!~ \[;]', line)[0].lower() for line in lines if line and not line.startswith('-')}


def setup_arguments() -> dict[str, Any]:
    """The arguments of setup() in setup.py that are literals."""
    tree = ast.parse((ROOT / 'setup.py').read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    [setup] = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == 'setup']
    arguments = {}
    for keyword in setup.keywords:
        try:
            arguments[keyword.arg or ''] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return arguments


@pytest.fixture(scope='module')
def manifest() -> ET.Element:
    """The root element of package.xml."""
    return ET.parse(ROOT / 'package.xml').getroot()


def test_manifest_and_setup_agree(manifest: ET.Element) -> None:
    arguments = setup_arguments()
    assert manifest.get('format') == '3'
    assert manifest.findtext('name') == NAME
    for argument in ['version', 'license', 'maintainer']:
        assert arguments[argument] == manifest.findtext(argument), argument
    maintainer = manifest.find('maintainer')
    assert maintainer is not None
    assert arguments['maintainer_email'] == maintainer.get('email')
    assert manifest.findtext('export/build_type') == 'ament_python'
    assert 'Apache License' in (ROOT / 'LICENSE').read_text()


def test_manifest_is_valid(manifest: ET.Element) -> None:
    """By the tool that colcon, rosdep and bloom read it with."""
    package = pytest.importorskip('catkin_pkg.package', reason='colcon is not installed')
    warnings: list[str] = []
    parsed = package.parse_package(str(ROOT), warnings=warnings)
    parsed.validate(warnings=warnings)
    assert warnings == []
    assert {url.type for url in parsed.urls} == {'website', 'repository', 'bugtracker'}
    assert all(re.fullmatch(r'https://\S+', url.url) for url in parsed.urls)
    assert [bool(re.fullmatch(r'[^@ ]+@[^@ ]+', one.email)) for one in parsed.maintainers] == [True]


def test_changelog_has_the_version(manifest: ET.Element) -> None:
    version = manifest.findtext('version')
    assert version is not None
    assert re.search(rf'^{re.escape(version)} \(', (ROOT / 'CHANGELOG.rst').read_text(), re.MULTILINE)


def test_dependencies_agree(manifest: ET.Element) -> None:
    """runtime.in, setup.py and package.xml name the same; in package.xml they have the names of rosdep."""
    runtime = requirement_names(ROOT / 'requirements' / 'runtime.in')
    assert {re.split('[<>=]', one)[0] for one in setup_arguments()['install_requires']} == runtime
    rosdep = {
        'pillow': 'python3-pil',
        'pyyaml': 'python3-yaml',
        'rosbags': 'python3-rosbags-pip',
        'xacro': 'xacro',
    }
    # no keys of rosdep; without them nothing walks, and identification takes longer
    runtime -= {'daqp', 'threadpoolctl'}
    expected = {rosdep.get(name, f'python3-{name}') for name in runtime}
    wheels = {name for name in requirement_names(ROOT / 'requirements' / 'ros.in') if name.startswith('ros-')}
    expected |= {name.removeprefix('ros-jazzy-').replace('-', '_') for name in wheels} | ONLY_IN_ROS
    expected.add('python3-collada')  # viser, which the viewer needs beside it, has no key of rosdep
    assert {element.text for element in manifest.findall('exec_depend')} == expected


@pytest.mark.parametrize('name', ['numba', 'numpy'])
def test_versions_are_bounded(manifest: ET.Element, name: str) -> None:
    """setup.py and package.xml agree, and what is locked, with which tests run, is within."""
    asked = [one for one in setup_arguments()['install_requires'] if re.match(rf'{name}[<>=]', one)]
    (element,) = [one for one in manifest.findall('exec_depend') if one.text == f'python3-{name}']
    assert asked == [f'{name}>={element.get("version_gte")},<{element.get("version_lt")}']
    lock = (ROOT / 'requirements' / 'lock.txt').read_text()
    for version in re.findall(rf'^{name}==([\d.]+)', lock, re.MULTILINE):
        low, found, high = (
            tuple(map(int, text.split('.')))
            for text in (element.get('version_gte', ''), version, element.get('version_lt', ''))
        )
        assert low <= found < high


@pytest.mark.parametrize(
    ('distribution', 'by_rosdep'),
    [
        ('humble', {'python3-numba', 'python3-rosbags-pip'}),  # Ubuntu 22.04: pip may install into the system
        ('jazzy', set()),  # Ubuntu 24.04: neither
        ('kilted', set()),
        ('rolling', {'python3-numba'}),
        ('', {'python3-numba'}),
    ],
)
def test_what_rosdep_installs_by_distribution(distribution: str, by_rosdep: set[str]) -> None:
    package = pytest.importorskip('catkin_pkg.package', reason='colcon is not installed')
    parsed = package.parse_package(str(ROOT))
    parsed.evaluate_conditions({'ROS_DISTRO': distribution})
    wanted = {one.name for one in parsed.exec_depends if one.evaluated_condition}
    assert wanted & {'python3-numba', 'python3-rosbags-pip'} == by_rosdep
    assert {'python3-numpy', 'python3-collada', 'rclpy', 'tf2_msgs'} <= wanted


def test_the_extra_for_ros_agrees() -> None:
    requires = importlib.metadata.requires(NAME) or []
    extra = {
        re.split(r'[<>=!~ \[;]', line)[0] for line in requires if 'extra == "ros"' in line.replace("'", '"')
    }
    assert extra == requirement_names(ROOT / 'requirements' / 'ros.in')


def test_folders_that_must_not_be_packages() -> None:
    """They would shadow Python's `test` and ROS's `launch`."""
    assert not list(ROOT.glob('test/**/__init__.py'))
    assert not list(ROOT.glob('launch/**/__init__.py'))


def locked_requirements(lock: Path) -> dict[str, list[str]]:
    """Each requirement of a lock (name, version and marker) with its hashes."""
    text = lock.read_text().replace('\\\n', ' ')
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith('#')]
    return {line.split(' --hash')[0]: re.findall(r'--hash=sha256:([0-9a-f]{64})\b', line) for line in lines}


@pytest.mark.parametrize('lock', LOCKS, ids=lambda path: path.name)
def test_lock_pins_and_hashes_everything(lock: Path) -> None:
    requirements = locked_requirements(lock)
    assert requirements
    for requirement, hashes in requirements.items():
        assert re.match(r'[a-z0-9._-]+(\[[a-z0-9,_-]+\])?==\S+', requirement), requirement
        assert hashes, f'{requirement} has no hash'


@pytest.mark.parametrize('lock', LOCKS, ids=lambda path: path.name)
def test_lock_names_no_place(lock: Path) -> None:
    """Neither the machine that made it nor a server: each user's pip knows where packages come from."""
    # a slash is in every address and in every path
    for trace in ['/', ' @ ', '--index', '-url', '--find-links', '--trusted-host']:
        assert trace not in lock.read_text(), trace


def test_locks_agree() -> None:
    everything = locked_requirements(ROOT / 'requirements' / 'lock.txt')
    assert locked_requirements(ROOT / 'requirements' / 'build.txt').items() <= everything.items()


def test_lock_covers_what_is_asked_for() -> None:
    requirements = locked_requirements(ROOT / 'requirements' / 'lock.txt')
    locked = {re.split(r'[=\[]', requirement)[0] for requirement in requirements}
    for file in ['runtime.in', 'ros.in', 'dev.in', 'build.in']:
        assert requirement_names(ROOT / 'requirements' / file) <= locked, file


@dataclass(frozen=True)
class Installation:
    """An installed copy of the package.

    Attributes:
        root: folder that holds all of it: the prefix, and for links what they point to.
        prefix: what it was installed into.
        script: the installed command.
        command: what a command line starts with to find the installed package.
        environment: environment variables of its processes.
    """

    root: Path
    prefix: Path
    script: Path
    command: tuple[str, ...]
    environment: dict[str, str]

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command that must succeed, outside the source tree."""
        return run([*self.command, *command], self.root, self.environment | variables)

    def python(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python code with the installed package."""
        return self.run(sys.executable, '-c', code, **variables)

    def imported_folder(self) -> Path:
        """The folder that `import quad_dynamics` finds."""
        return Path(self.python(f'import {NAME}; print({NAME}.__file__)').stdout.strip()).parent

    def files(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of every file."""
        stats = {path: path.lstat() for path in self.root.rglob('*') if not path.is_dir()}
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def run(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command; if it fails, so does the test, with all that the command said."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f'{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}'
    return done


def clean_environment(home: Path) -> dict[str, str]:
    """Environment without another installation's paths, and with a home of its own."""
    home.mkdir(exist_ok=True)
    kept = ['PATH', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH']
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        'HOME': str(home),
        # nothing may be downloaded
        'PIP_NO_INDEX': '1',
        # so that every file that appears in an installation is one that the library wrote
        'PYTHONDONTWRITEBYTECODE': '1',
    }


def colcon_build(root: Path, environment: dict[str, str], *options: str) -> Installation:
    """Build the workspace `root`, which has the package below its folder `src`."""
    colcon = [sys.executable, '-c', 'import sys; from colcon_core.command import main; sys.exit(main())']
    run([*colcon, 'build', '--executor', 'sequential', *options], root, environment)
    prefix = root / 'install' / NAME
    in_workspace = ('sh', '-c', f'. "{root}/install/setup.sh" && exec "$@"', 'sh')
    return Installation(root, prefix, prefix / 'lib' / NAME / NAME, in_workspace, environment)


def colcon_workspace(folder: Path, *options: str) -> Installation:
    pytest.importorskip('colcon_ros', reason='colcon is not installed')
    clone_source(folder / 'work' / 'src')
    return colcon_build(folder / 'work', clean_environment(folder / 'home'), *options)


def pip_install(folder: Path) -> Installation:
    environment = clean_environment(folder / 'home')
    source = clone_source(folder)
    prefix = folder / 'prefix'
    options = ['--no-deps', '--no-build-isolation', '--ignore-installed', '--prefix', prefix]
    run([sys.executable, '-m', 'pip', 'install', *options, source], folder, environment)
    shutil.rmtree(source)
    environment |= {'PYTHONPATH': str(prefix / SITE_PACKAGES), 'AMENT_PREFIX_PATH': str(prefix)}
    return Installation(prefix, prefix, prefix / 'bin' / NAME, (), environment)


@pytest.mark.slow
@pytest.mark.parametrize('options', [('--editable',), ()], ids=['editable', 'regular'])
def test_imports_beside_the_clone(options: tuple[str, ...], tmp_path: Path) -> None:
    """There, the folder of the clone has the name of the package, and comes first in the path."""
    environment = clean_environment(tmp_path / 'home')
    source = clone_source(tmp_path)
    run([sys.executable, '-m', 'venv', '--without-pip', 'env'], tmp_path, environment)
    python = tmp_path / 'env' / 'bin' / 'python'
    site = tmp_path / 'env' / SITE_PACKAGES
    (site / 'dependencies.pth').write_text(f'{sysconfig.get_path("purelib")}\n')
    install = ['install', '--no-deps', '--no-build-isolation', '--ignore-installed', *options, source]
    run([python, '-m', 'pip', *install], tmp_path, environment)
    code = f'import {NAME}; print({NAME}.__file__)'
    (tmp_path / 'script.py').write_text(code)
    for folder in (tmp_path, source, Path('/')):
        for command in (['-c', code], [tmp_path / 'script.py']):
            found = Path(run([python, *command], folder, environment).stdout.strip())
            assert found == (source if options else site) / NAME / '__init__.py' or folder == source
        run([python, '-m', NAME, '--version'], folder, environment)
        run([tmp_path / 'env' / 'bin' / NAME, '--version'], folder, environment)


def set_writeable(folder: Path, writeable: bool) -> None:
    for path in [folder, *folder.rglob('*')]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o200 if writeable else mode & ~0o222)


INSTALLERS: dict[str, Callable[[Path], Installation]] = {
    'colcon': colcon_workspace,
    'colcon-symlink': lambda folder: colcon_workspace(folder, '--symlink-install'),
    'pip': pip_install,
}


@pytest.fixture(scope='module', params=INSTALLERS)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """The package, installed in each of the ways and then made read-only."""
    made = INSTALLERS[request.param](tmp_path_factory.mktemp(request.param))
    set_writeable(made.root, False)
    yield made
    set_writeable(made.root, True)


@pytest.mark.slow
class TestInstallation:
    def test_imports_from_there(self, installation: Installation) -> None:
        assert installation.imported_folder().is_relative_to(installation.root)

    def test_command_is_there(self, installation: Installation) -> None:
        assert os.access(installation.script, os.X_OK)
        assert 'usage' in installation.run(installation.script, '--help').stdout.lower()

    def test_command_is_on_the_path(self, installation: Installation) -> None:
        """After the setup file of the workspace; with pip, in bin/ of the prefix, beside its Python."""
        if not installation.command:
            assert installation.script == installation.prefix / 'bin' / NAME
            assert installation.script.read_text().startswith('#!')
            assert 'exec "$(dirname' not in installation.script.read_text()
            return
        found = Path(installation.run('sh', '-c', f'command -v {NAME}').stdout.strip())
        assert found == installation.prefix / 'bin' / NAME
        assert (
            installation.run(NAME, '--help').stdout == installation.run(installation.script, '--help').stdout
        )

    def test_metadata_have_the_readme(self, installation: Installation) -> None:
        # As it stands in the file: Python 3.13.0 cannot print metadata that it has parsed.
        found = f"d = importlib.metadata.distribution('{NAME}')"
        code = (
            f"import importlib.metadata; {found}; print(d.read_text('METADATA') or d.read_text('PKG-INFO'))"
        )
        text = installation.python(code).stdout
        assert 'Description-Content-Type: text/markdown' in text
        assert (ROOT / 'README.md').read_text(encoding='utf-8').strip() in text

    def test_ament_index_knows_it(self, installation: Installation) -> None:
        done = installation.python('import os; print(os.environ["AMENT_PREFIX_PATH"])')
        assert done.stdout.strip() == str(installation.prefix)
        share = installation.prefix / 'share'
        assert (share / 'ament_index' / 'resource_index' / 'packages' / NAME).is_file()
        assert (share / NAME / 'package.xml').read_bytes() == (ROOT / 'package.xml').read_bytes()

    def test_data_files_are_there(self, installation: Installation) -> None:
        """Robots twice: in the package, for load_model, and in share, for `package://` and launch files."""
        robots = ROOT / NAME / 'robots'
        files = {path.relative_to(robots) for kind in ['*.urdf', '*.yaml'] for path in robots.rglob(kind)}
        assert Path('mini_cheetah/mini_cheetah.urdf') in files
        imported = installation.imported_folder()
        for folder in [imported / 'robots', installation.prefix / 'share' / NAME / 'robots']:
            assert [path for path in files if not (folder / path).is_file()] == [], folder
        assert (imported / 'py.typed').is_file()
        assert (imported / 'planning' / 'gaits.yaml').is_file()

    def test_read_only_package_computes(self, installation: Installation, tmp_path: Path) -> None:
        """It compiles once per user, not once per process, and writes nothing beside itself.

        Root may write into read-only folders, so what counts is that no file has appeared or changed.
        """
        before = installation.files()
        first = installation.python(COMPUTE, HOME=str(tmp_path))
        second = installation.python(COMPUTE, HOME=str(tmp_path))
        assert 'compiling' in first.stderr
        assert 'compiling' not in second.stderr
        assert installation.files() == before


@pytest.mark.slow
def test_workspace_changes_between_copies_and_links(tmp_path: Path) -> None:
    made = colcon_workspace(tmp_path)
    for options in [['--symlink-install'], []]:
        made = colcon_build(made.root, made.environment, *options)
        links = [path for path in (made.prefix / 'share' / NAME).rglob('*.urdf') if path.is_symlink()]
        assert bool(links) == bool(options)
        made.run(made.script, '--help')
