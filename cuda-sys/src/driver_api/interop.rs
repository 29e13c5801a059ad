//! Rows of [`driver_api!`](crate::driver_api!): functions of cudaGL.h, cudaEGL.h and cudaVDPAU.h.
//! They are forwarded and NOT modelled. How to read a row, and how to add one: see the parent
//! module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_interop {
    ({$callback:ident {$($extra:tt)*}} {$($rows:tt)*}) => { $callback! { $($extra)* $($rows)*

    // cudaGL.h
    skip fn cuGraphicsGLRegisterBuffer [plain cuGraphicsGLRegisterBuffer];
    skip fn cuGraphicsGLRegisterImage [plain cuGraphicsGLRegisterImage];
    skip fn cuGLGetDevices [plain cuGLGetDevices, plain cuGLGetDevices_v2];
    skip fn cuGLCtxCreate [plain cuGLCtxCreate, plain cuGLCtxCreate_v2];
    skip fn cuGLInit [plain cuGLInit];
    skip fn cuGLRegisterBufferObject [plain cuGLRegisterBufferObject];
    skip fn cuGLMapBufferObject [
        legacy cuGLMapBufferObject,
        legacy cuGLMapBufferObject_v2,
        per_thread cuGLMapBufferObject_v2_ptds
    ];
    skip fn cuGLUnmapBufferObject [plain cuGLUnmapBufferObject];
    skip fn cuGLUnregisterBufferObject [plain cuGLUnregisterBufferObject];
    skip fn cuGLSetBufferObjectMapFlags [plain cuGLSetBufferObjectMapFlags];
    skip fn cuGLMapBufferObjectAsync [
        legacy cuGLMapBufferObjectAsync,
        legacy cuGLMapBufferObjectAsync_v2,
        per_thread cuGLMapBufferObjectAsync_v2_ptsz
    ];
    skip fn cuGLUnmapBufferObjectAsync [legacy cuGLUnmapBufferObjectAsync];
    // cudaVDPAU.h
    skip fn cuVDPAUGetDevice [plain cuVDPAUGetDevice];
    skip fn cuVDPAUCtxCreate [plain cuVDPAUCtxCreate, plain cuVDPAUCtxCreate_v2];
    skip fn cuGraphicsVDPAURegisterVideoSurface [plain cuGraphicsVDPAURegisterVideoSurface];
    skip fn cuGraphicsVDPAURegisterOutputSurface [plain cuGraphicsVDPAURegisterOutputSurface];
    // cudaEGL.h
    skip fn cuGraphicsEGLRegisterImage [plain cuGraphicsEGLRegisterImage];
    skip fn cuEGLStreamConsumerConnect [plain cuEGLStreamConsumerConnect];
    skip fn cuEGLStreamConsumerConnectWithFlags [plain cuEGLStreamConsumerConnectWithFlags];
    skip fn cuEGLStreamConsumerDisconnect [plain cuEGLStreamConsumerDisconnect];
    skip fn cuEGLStreamConsumerAcquireFrame [plain cuEGLStreamConsumerAcquireFrame];
    skip fn cuEGLStreamConsumerReleaseFrame [plain cuEGLStreamConsumerReleaseFrame];
    skip fn cuEGLStreamProducerConnect [plain cuEGLStreamProducerConnect];
    skip fn cuEGLStreamProducerDisconnect [plain cuEGLStreamProducerDisconnect];
    skip fn cuEGLStreamProducerPresentFrame [plain cuEGLStreamProducerPresentFrame];
    skip fn cuEGLStreamProducerReturnFrame [plain cuEGLStreamProducerReturnFrame];
    skip fn cuGraphicsResourceGetMappedEglFrame [plain cuGraphicsResourceGetMappedEglFrame];
    skip fn cuEventCreateFromEGLSync [plain cuEventCreateFromEGLSync];

    } };
}
