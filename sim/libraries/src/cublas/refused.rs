//! Every function of cuBLAS that has no stand-in: it answers "not supported" and is named.

use super::handle::Status;
use crate::driver_link::refused;

/// Defines functions that refuse.
macro_rules! refuse {
    ($($name:ident)*) => { $(
        const _: () = {
            // SAFETY: the library's name. It looks at no arguments, so any caller's are fine under
            // the C ABI.
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> std::ffi::c_int {
                $crate::cublas::refused::not_written(stringify!($name))
            }
        };
    )* };
}

pub(crate) use refuse;

/// Names a function and answers its status.
pub fn not_written(name: &str) -> i32 {
    refused(&format!("{name} is not simulated"));
    Status::NOT_SUPPORTED.0
}

refuse! {
    cublasAsumEx cublasAsumEx_64 cublasCgbmv_v2 cublasCgbmv_v2_64 cublasCgemvBatched cublasCgemvBatched_64
    cublasChbmv_v2 cublasChbmv_v2_64 cublasCherk3mEx cublasCherk3mEx_64 cublasCherkEx cublasCherkEx_64 cublasCherkx
    cublasCherkx_64 cublasChpmv_v2 cublasChpmv_v2_64 cublasChpr2_v2 cublasChpr2_v2_64 cublasChpr_v2 cublasChpr_v2_64
    cublasCopyEx cublasCopyEx_64 cublasCrotg_v2 cublasCsyrk3mEx cublasCsyrk3mEx_64 cublasCsyrkEx cublasCsyrkEx_64
    cublasCsyrkx cublasCsyrkx_64 cublasCtbmv_v2 cublasCtbmv_v2_64 cublasCtbsv_v2 cublasCtbsv_v2_64 cublasCtpmv_v2
    cublasCtpmv_v2_64 cublasCtpsv_v2 cublasCtpsv_v2_64 cublasCtpttr cublasCtrttp cublasDgbmv_v2 cublasDgbmv_v2_64
    cublasDgemmGroupedBatched cublasDgemmGroupedBatched_64 cublasDgemvBatched cublasDgemvBatched_64 cublasDrotg_v2
    cublasDrotm_v2 cublasDrotm_v2_64 cublasDrotmg_v2 cublasDsbmv_v2 cublasDsbmv_v2_64 cublasDspmv_v2
    cublasDspmv_v2_64 cublasDspr2_v2 cublasDspr2_v2_64 cublasDspr_v2 cublasDspr_v2_64 cublasDsyrkx cublasDsyrkx_64
    cublasDtbmv_v2 cublasDtbmv_v2_64 cublasDtbsv_v2 cublasDtbsv_v2_64 cublasDtpmv_v2 cublasDtpmv_v2_64
    cublasDtpsv_v2 cublasDtpsv_v2_64 cublasDtpttr cublasDtrttp cublasGemmGroupedBatchedEx
    cublasGemmGroupedBatchedEx_64 cublasGetEmulationSpecialValuesSupport cublasGetEmulationStrategy
    cublasGetFixedPointEmulationMantissaBitCountPointer cublasGetFixedPointEmulationMantissaBitOffset
    cublasGetFixedPointEmulationMantissaControl cublasGetFixedPointEmulationMaxMantissaBitCount
    cublasGetLoggerCallback cublasHSHgemvBatched cublasHSHgemvBatched_64 cublasHSHgemvStridedBatched
    cublasHSHgemvStridedBatched_64 cublasHSSgemvBatched cublasHSSgemvBatched_64 cublasHSSgemvStridedBatched
    cublasHSSgemvStridedBatched_64 cublasIamaxEx cublasIamaxEx_64 cublasIaminEx cublasIaminEx_64 cublasIcamax_v2_64
    cublasIcamin_v2_64 cublasIdamax_v2_64 cublasIdamin_v2_64 cublasIsamax_v2_64 cublasIsamin_v2_64
    cublasIzamax_v2_64 cublasIzamin_v2_64 cublasRotEx cublasRotEx_64 cublasRotgEx cublasRotmEx cublasRotmEx_64
    cublasRotmgEx cublasSetEmulationSpecialValuesSupport cublasSetEmulationStrategy
    cublasSetFixedPointEmulationMantissaBitCountPointer cublasSetFixedPointEmulationMantissaBitOffset
    cublasSetFixedPointEmulationMantissaControl cublasSetFixedPointEmulationMaxMantissaBitCount cublasSgbmv_v2
    cublasSgbmv_v2_64 cublasSgemmGroupedBatched cublasSgemmGroupedBatched_64 cublasSgemvBatched
    cublasSgemvBatched_64 cublasSrotg_v2 cublasSrotm_v2 cublasSrotm_v2_64 cublasSrotmg_v2 cublasSsbmv_v2
    cublasSsbmv_v2_64 cublasSspmv_v2 cublasSspmv_v2_64 cublasSspr2_v2 cublasSspr2_v2_64 cublasSspr_v2
    cublasSspr_v2_64 cublasSsyrkx cublasSsyrkx_64 cublasStbmv_v2 cublasStbmv_v2_64 cublasStbsv_v2 cublasStbsv_v2_64
    cublasStpmv_v2 cublasStpmv_v2_64 cublasStpsv_v2 cublasStpsv_v2_64 cublasStpttr cublasStrttp cublasSwapEx
    cublasSwapEx_64 cublasTSSgemvBatched cublasTSSgemvBatched_64 cublasTSSgemvStridedBatched
    cublasTSSgemvStridedBatched_64 cublasTSTgemvBatched cublasTSTgemvBatched_64 cublasTSTgemvStridedBatched
    cublasTSTgemvStridedBatched_64 cublasUint8gemmBias cublasXerbla cublasZgbmv_v2 cublasZgbmv_v2_64
    cublasZgemvBatched cublasZgemvBatched_64 cublasZhbmv_v2 cublasZhbmv_v2_64 cublasZherkx cublasZherkx_64
    cublasZhpmv_v2 cublasZhpmv_v2_64 cublasZhpr2_v2 cublasZhpr2_v2_64 cublasZhpr_v2 cublasZhpr_v2_64 cublasZrotg_v2
    cublasZsyrkx cublasZsyrkx_64 cublasZtbmv_v2 cublasZtbmv_v2_64 cublasZtbsv_v2 cublasZtbsv_v2_64 cublasZtpmv_v2
    cublasZtpmv_v2_64 cublasZtpsv_v2 cublasZtpsv_v2_64 cublasZtpttr cublasZtrttp
}
