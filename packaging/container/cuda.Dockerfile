# StreamSan with CUDA's compiler and libraries, for jobs that build the program, too:
#   podman build -t streamsan-cuda -f packaging/container/cuda.Dockerfile dist/  dist/: of scripts/release/build
# On a GPU: podman run --device nvidia.com/gpu=all ....
ARG CUDA=13.0.0-devel-ubuntu24.04
FROM nvidia/cuda:${CUDA}
RUN --mount=type=bind,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/streamsan_*_amd64.deb \
    && rm -rf /var/lib/apt/lists/* \
    && streamsan --version
WORKDIR /work
CMD ["bash"]
