# Copyright (c) 2026, the Tern authors
#
# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class CudnnFrontend(Package):
    """C++ headers in front of cuDNN's graph interface."""

    homepage = "https://github.com/NVIDIA/cudnn-frontend"
    git = "https://github.com/NVIDIA/cudnn-frontend.git"

    license("MIT")

    version("1.23.0", tag="v1.23.0", commit="fb682ce761a2705e40f9b5d528737a3e0eb33cec")
    version("1.22.1", tag="v1.22.1", commit="a91f0e04dcea10515f0f776fc5a89535e316a9c8")

    depends_on("cudnn@8.5:", type="run")

    sanity_check_is_file = [join_path("include", "cudnn_frontend.h")]

    def install(self, spec, prefix):
        install_tree("include", prefix.include)
