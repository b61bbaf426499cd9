namespace tern::ops {

// Only this source and the one that calls cuDNN depend on whether it was found.
bool cudnn_built() {
#if defined(TERN_WITH_CUDNN)
  return true;
#else
  return false;
#endif
}

}  // namespace tern::ops
