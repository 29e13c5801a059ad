// expect: clean
// pair: kernel accumulate on stream of place 1 / cudaMemcpy2DAsync of its partial sums on stream of place 0
// needs: none
// racy: race RAW
// why: The copy that collects a partial sum waits for the task that made it. With `racy` it begins with an empty list of events.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e_ = (call); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

constexpr int ROWS = 32, COLUMNS = 100, PLACES = 3;

// What must have happened before something may be used.
using Events = std::vector<cudaEvent_t>;

// The partial sums of a place, as a matrix with padded rows, and who has made them.
struct Instance {
    int *data;
    size_t pitch;
    Events ready;
};

struct Place {
    cudaStream_t stream;
    Instance sums;
};

__global__ void accumulate(int *sums, size_t pitch, int from) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= COLUMNS) return;
    int sum = 0;
    for (int k = 0; k < 40; k++) sum += (from + k) * (row + 1) + column;
    sums[row * (pitch / 4) + column] = sum;
}

__global__ void fold(int *sums, const int *others, size_t pitch) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column < COLUMNS) sums[row * (pitch / 4) + column] += others[row * (pitch / 4) + column];
}

cudaEvent_t record(cudaStream_t stream) {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventRecord(event, stream));
    return event;
}

void wait(cudaStream_t stream, const Events &events) {
    for (cudaEvent_t event : events) CHECK(cudaStreamWaitEvent(stream, event, 0));
}

const dim3 GRID((COLUMNS + 63) / 64, ROWS), BLOCK(64);

// Folds the partial sums of the other places into those of the first one.
void reconstruct(Place *places, Instance &scratch, bool racy) {
    Instance &to = places[0].sums;
    cudaStream_t stream = places[0].stream;
    for (int i = 1; i < PLACES; i++) {
        Instance &from = places[i].sums;
        Events before;
        if (!racy) before = from.ready;
        wait(stream, before);
        CHECK(cudaMemcpy2DAsync(scratch.data, scratch.pitch, from.data, from.pitch, COLUMNS * 4, ROWS,
                                cudaMemcpyDeviceToDevice, stream));
        fold<<<GRID, BLOCK, 0, stream>>>(to.data, scratch.data, to.pitch);
        CHECK(cudaGetLastError());
    }
    to.ready = {record(stream)};
}

int main(int argc, char **argv) {
    const bool racy = argc > 1 && !strcmp(argv[1], "racy");
    Place places[PLACES];
    Instance scratch;
    CHECK(cudaMallocPitch(&scratch.data, &scratch.pitch, COLUMNS * 4, ROWS));
    for (int i = 0; i < PLACES; i++) {
        Place &place = places[i];
        CHECK(cudaStreamCreateWithFlags(&place.stream, cudaStreamNonBlocking));
        CHECK(cudaMallocPitch(&place.sums.data, &place.sums.pitch, COLUMNS * 4, ROWS));
        CHECK(cudaMemset2D(place.sums.data, place.sums.pitch, 0, COLUMNS * 4, ROWS));
    }
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < PLACES; i++) {
        Place &place = places[i];
        accumulate<<<GRID, BLOCK, 0, place.stream>>>(place.sums.data, place.sums.pitch, i * 40);
        CHECK(cudaGetLastError());
        place.sums.ready = {record(place.stream)};
    }
    reconstruct(places, scratch, racy);
    std::vector<int> result(ROWS * COLUMNS);
    Instance &sums = places[0].sums;
    wait(places[0].stream, sums.ready);
    CHECK(cudaMemcpy2DAsync(result.data(), COLUMNS * 4, sums.data, sums.pitch, COLUMNS * 4, ROWS,
                            cudaMemcpyDeviceToHost, places[0].stream));
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            int right = 0;
            for (int k = 0; k < 40 * PLACES; k++) right += k * (row + 1) + column;
            wrong += result[row * COLUMNS + column] != right;
        }
    printf("%d sums of %d places, last %d, %d wrong\n", ROWS * COLUMNS, PLACES, result.back(), wrong);
    return 0;
}
