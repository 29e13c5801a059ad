/* What Guest.java calls. */
#include "landing.h"
#include <jni.h>

static char *landing;

JNIEXPORT jobject JNICALL Java_Guest_open(JNIEnv *env, jclass self) {
    (void)self;
    landing = landing_open();
    return (*env)->NewDirectByteBuffer(env, landing, LANDING_BYTES);
}
JNIEXPORT void JNICALL Java_Guest_start(JNIEnv *env, jclass self) { (void)env, (void)self, landing_start(); }
JNIEXPORT void JNICALL Java_Guest_finish(JNIEnv *env, jclass self) { (void)env, (void)self, landing_finish(); }
JNIEXPORT jlong JNICALL Java_Guest_fromC(JNIEnv *env, jclass self) {
    (void)env, (void)self;
    long sum = 0;
    for (int i = 0; i < LANDING_BYTES; i++) sum += ((volatile char *)landing)[i];
    return sum;
}
/* A fault that is nobody's: the JVM writes its report and dies. */
JNIEXPORT void JNICALL Java_Guest_fromNowhere(JNIEnv *env, jclass self) { (void)env, (void)self, *(volatile char *)16 = 1; }
