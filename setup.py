# SPDX-License-Identifier: Apache-2.0
"""Build script: an ament_python package for colcon, a plain Python package for pip."""

import sys
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE_NAME = 'quad_dynamics'
SHARE = f'share/{PACKAGE_NAME}'
ROBOTS = 'quad_dynamics/robots'
# With --symlink-install colcon runs a link to this file from its build folder, where there is no README.
README = Path(__file__).resolve().with_name('README.md')

# The folders that are import packages. A new node is one more word here.
IMPORT_PACKAGES = ['quad_dynamics', 'force_node', 'identification', 'planner_node', 'sim_node', 'viewer_node']

# Folders that are installed as they are.
SHARED = ['config', 'launch', 'rviz']
# ROS without an installation, and what the nodes use beside it; the same names as in requirements/ros.in.
ON_LINUX = "; sys_platform == 'linux' and platform_machine == 'x86_64'"
ROS_WHEELS = ['pycollada', 'viser>=1.1,<1.2'] + [
    f'ros-jazzy-{name}{ON_LINUX}'
    for name in (
        'rclpy[fastrtps]',
        'builtin-interfaces',
        'diagnostic-msgs',
        'geometry-msgs',
        'nav-msgs',
        'rosgraph-msgs',
        'sensor-msgs',
        'std-msgs',
        'std-srvs',
        'trajectory-msgs',
        'visualization-msgs',
    )
]

# Setup files of a ROS workspace put bin/ on the PATH; setup.cfg installs programs where `ros2 run` looks.
# A wheel has the program in bin/ anyway.
IS_WHEEL = bool({'bdist_wheel', 'dist_info', 'editable_wheel'} & set(sys.argv))
PROGRAMS = [] if IS_WHEEL else [('bin', [f'resource/bin/{PACKAGE_NAME}'])]


def files_below(folder: str, relative_to: str = '.') -> list[str]:
    """Paths of the data files below a folder.

    They are listed one by one: `**` in package_data needs setuptools 62, and Ubuntu 22.04 has 59.
    """
    paths = [
        path
        for path in Path(folder).rglob('*')
        if path.is_file() and (path.suffix not in {'.py', '.pyc'} or path.name.endswith('.launch.py'))
    ]
    return sorted(path.relative_to(relative_to).as_posix() for path in paths)


def share_tree(folder: str, target: str) -> list[tuple[str, list[str]]]:
    """Entries of data_files that install a folder with its subfolders as `target`."""
    entries: dict[str, list[str]] = {}
    for file in files_below(folder):
        subfolder = Path(file).parent.relative_to(folder)
        entries.setdefault((Path(target) / subfolder).as_posix(), []).append(file)
    return list(entries.items())


setup(
    name=PACKAGE_NAME,
    version='0.1.0',
    description='Robot models from URDF and rigid-body dynamics of floating-base robots.',
    long_description=README.read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    maintainer='quad_dynamics maintainers',
    maintainer_email='quad_dynamics@example.org',
    license='Apache-2.0',
    python_requires='>=3.10',
    # The same names as in requirements/runtime.in and package.xml.
    install_requires=[
        'daqp',
        'jinja2',
        'matplotlib',
        # What has been run (docs/running.md): kernels rely on how they lay out arrays and call functions.
        'numba>=0.55.1,<0.69',
        'numpy>=1.21.5,<2.6',
        'pillow',
        'pyyaml',
        'rosbags',
        'scipy',
        'threadpoolctl',
        'tqdm',
        'xacro',
    ],
    extras_require={'ros': ROS_WHEELS, 'test': ['pytest']},
    packages=find_packages(include=[pattern for name in IMPORT_PACKAGES for pattern in (name, f'{name}.*')]),
    package_data={
        'quad_dynamics': [
            'py.typed',
            'identification/report/*.j2',
            'planning/*.yaml',
            *files_below(ROBOTS, relative_to='quad_dynamics'),
        ],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE_NAME}']),
        (SHARE, ['package.xml']),
        *PROGRAMS,
        *share_tree(ROBOTS, f'{SHARE}/robots'),
        *(entry for folder in SHARED for entry in share_tree(folder, f'{SHARE}/{folder}')),
    ],
    entry_points={
        'console_scripts': [
            'quad_dynamics = quad_dynamics.cli:main',
            *(f'{name} = {name}.__main__:main' for name in IMPORT_PACKAGES if name != PACKAGE_NAME),
        ]
    },
    zip_safe=False,
)
