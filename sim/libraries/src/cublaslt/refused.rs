//! Every function of cuBLASLt that has no stand-in: it answers "not supported" and is named.

use crate::cublas::refused::refuse;

refuse! {
    cublasLtEmulationDescCreate cublasLtEmulationDescDestroy cublasLtEmulationDescGetAttribute
    cublasLtEmulationDescInit_internal cublasLtEmulationDescSetAttribute cublasLtMatmulAlgoCapGetAttribute
    cublasLtMatmulAlgoConfigGetAttribute cublasLtMatmulAlgoConfigSetAttribute cublasLtMatrixTransform
    cublasLtMatrixTransformDescCreate cublasLtMatrixTransformDescDestroy cublasLtMatrixTransformDescGetAttribute
    cublasLtMatrixTransformDescInit_internal cublasLtMatrixTransformDescSetAttribute
}
