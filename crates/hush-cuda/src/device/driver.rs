//! A GPU behind its driver, which is looked for when the first GPU is opened.

use std::{
    collections::HashMap,
    ffi::{CString, c_int, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};

use cudarc::driver::{
    result::{self, DriverError, ctx, device, event, module, primary_ctx},
    sys,
};

use super::{
    Arg, CudaError, Device, DeviceInfo, Launch,
    copies::{downloads::Downloads, peers::Peers, uploads::Uploads},
    modules,
    runtime::Runtime,
    stream::{Event, Stream},
};

/// Earliest compute capability that the kernels run on.
const OLDEST: (u32, u32) = (8, 0);
/// Earliest version of CUDA whose driver loads what the kernels' compiler makes.
const OLDEST_DRIVER: (u32, u32) = (13, 0);
/// Uploads of up to this many bytes go the driver's own way.
const SMALL_BYTES: usize = 64 << 10;
/// Dynamic shared memory that a block may have without asking for more.
const DEFAULT_SHARED: u32 = 48 << 10;

/// A GPU: its context, the stream on which all work is done in order, copies and branches beside it, and its kernels.
pub(super) struct Gpu {
    info: DeviceInfo,
    pub(super) peers: Mutex<Peers>,
    /// All kernels that it runs.
    functions: Mutex<HashMap<&'static str, Function>>,
    modules: Vec<sys::CUmodule>,
    uploads: Mutex<Uploads>,
    downloads: Mutex<Downloads>,
    side: Stream,
    pub(super) main: Stream,
    /// The last to go.
    pub(super) context: Context,
}

/// The primary context of a GPU, which is retained.
pub(super) struct Context {
    pub(super) device: sys::CUdevice,
    pub(super) handle: sys::CUcontext,
}

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Self, CudaError> {
        // SAFETY: the handle is one of the driver's.
        let handle = unsafe { primary_ctx::retain(device) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Self { device, handle })
    }

    /// Makes it current on this thread.
    fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: it is retained.
        unsafe { ctx::set_current(self.handle) }.map_err(failed("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained here. A failure is of no consequence: nothing of it is used any more.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

/// A kernel, and the dynamic shared memory that it was allowed.
#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    shared: u32,
}

// SAFETY: the driver's handles may be used from any thread; each call makes the context current first.
unsafe impl Send for Gpu {}
// SAFETY: as above; what is ours is behind locks.
unsafe impl Sync for Gpu {}

/// What the GPUs say of themselves.
pub(super) fn list() -> Result<Vec<DeviceInfo>, CudaError> {
    start()?;
    (0..count()?).map(|ordinal| describe(handle(ordinal)?)).collect()
}

/// The version of CUDA that the driver has: major and minor.
pub(super) fn version() -> Result<(u32, u32), CudaError> {
    start()?;
    let mut version: c_int = 0;
    // SAFETY: the driver is loaded, and writes one number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

/// Finds the driver and starts it.
fn start() -> Result<(), CudaError> {
    // SAFETY: it tries to load the library, whose initialisers are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    result::init().map_err(failed("cuInit"))
}

fn count() -> Result<usize, CudaError> {
    Ok(device::get_count().map_err(failed("cuDeviceGetCount"))? as usize)
}

fn handle(ordinal: usize) -> Result<sys::CUdevice, CudaError> {
    device::get(ordinal as c_int).map_err(failed("cuDeviceGet"))
}

fn describe(handle: sys::CUdevice) -> Result<DeviceInfo, CudaError> {
    use sys::CUdevice_attribute as A;
    let attribute = |attribute| -> Result<u32, CudaError> {
        // SAFETY: the handle is one of the driver's.
        let value = unsafe { device::get_attribute(handle, attribute) };
        Ok(value.map_err(failed("cuDeviceGetAttribute"))? as u32)
    };
    Ok(DeviceInfo {
        name: device::get_name(handle).map_err(failed("cuDeviceGetName"))?,
        capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: the handle is one of the driver's.
        memory_bytes: unsafe { device::total_mem(handle) }.map_err(failed("cuDeviceTotalMem"))?,
        l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        shared_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
    })
}

impl Gpu {
    pub(super) fn open(ordinal: usize) -> Result<Self, CudaError> {
        let (major, minor) = version()?;
        if (major, minor) < OLDEST_DRIVER {
            return Err(CudaError::OldDriver { major, minor });
        }
        let count = count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let device = handle(ordinal)?;
        let info = describe(device)?;
        if info.capability < OLDEST {
            let (major, minor) = info.capability;
            return Err(CudaError::TooOld { name: info.name, major, minor });
        }
        // From here on, what is made goes in the opposite order, if the rest cannot be.
        let context = Context::retain(device)?;
        context.enter()?;
        let mut gpu = Self {
            info,
            peers: Mutex::default(),
            functions: Mutex::default(),
            modules: Vec::new(),
            uploads: Mutex::new(Uploads::new()?),
            downloads: Mutex::new(Downloads::new()?),
            side: Stream::beside()?,
            main: Stream::first()?,
            context,
        };
        gpu.load()?;
        Ok(gpu)
    }

    /// Loads all kernels. Left to itself the driver does so when one is first launched: in the middle of a batch, for which a text
    /// is compiled first, and where tables may have taken all memory.
    fn load(&mut self) -> Result<(), CudaError> {
        let mut functions = lock(&self.functions);
        for image in modules::images_for(self.info.capability) {
            // SAFETY: images are whole cubins, or text that ends with a zero.
            let module = unsafe { module::load_data(image.as_ptr().cast()) }
                .map_err(failed(format!("cuModuleLoadData of {}", image.name())))?;
            self.modules.push(module);
            for &kernel in image.kernels() {
                let name = CString::new(kernel).map_err(|_| CudaError::NoKernel(kernel))?;
                // SAFETY: the module is loaded until drop.
                let handle = unsafe { module::get_function(module, name) }
                    .map_err(failed(format!("cuModuleGetFunction of {kernel}")))?;
                // SAFETY: as above.
                unsafe { sys::cuFuncLoad(handle) }
                    .result()
                    .map_err(failed(format!("cuFuncLoad of {kernel}")))?;
                functions.insert(kernel, Function { handle, shared: DEFAULT_SHARED });
            }
        }
        Ok(())
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn free_bytes(&self) -> Result<usize, CudaError> {
        self.enter()?;
        free_bytes()
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        self.enter()?;
        allocate(bytes)
    }

    pub(super) fn free(&self, address: u64) {
        // Nothing can be done about a failure here: the device is lost, and whoever uses it next is told.
        let _ = self.enter();
        // SAFETY: it was allocated here, and is forgotten; the pool has waited for the work on it.
        let _ = unsafe { result::free_sync(address) };
    }

    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: slices lie within what was allocated.
        unsafe { result::memset_d8_async(address, 0, bytes, self.main.handle()) }
            .map_err(failed("cuMemsetD8Async"))
    }

    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        self.enter()?;
        if host.len() > SMALL_BYTES {
            return lock(&self.uploads).upload(host, address, &self.main);
        }
        // SAFETY: the slice lies within an allocation. From memory that is not pinned, the driver copies before it returns.
        unsafe { result::memcpy_htod_async(address, host, self.main.handle()) }
            .map_err(failed("cuMemcpyHtoDAsync"))
    }

    pub(super) fn download(
        &self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CudaError> {
        self.enter()?;
        // Before the lock: while other downloads are waited for, other threads go on queueing work.
        let ready = Event::after(&self.main)?;
        lock(&self.downloads).download(address, bytes, take, &ready)
    }

    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: slices lie within what was allocated.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.main.handle()) }
            .map_err(failed("cuMemcpyDtoDAsync"))
    }

    pub(super) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_on(&self.main, kernel, launch, args)
    }

    pub(super) fn launch_beside(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_on(&self.side, kernel, launch, args)
    }

    fn launch_on(
        &self,
        stream: &Stream,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.enter()?;
        let function = self.function(kernel, launch.shared)?;
        let mut params: Vec<*mut c_void> = args.iter().map(|arg| arg.as_ptr() as *mut c_void).collect();
        let ([x, y, z], block) = (launch.grid, (launch.block, 1, 1));
        // SAFETY: the pointers are valid for the call, which copies what they point to; the step passes what the kernel takes.
        let launched = unsafe {
            result::launch_kernel(function, (x, y, z), block, launch.shared, stream.handle(), &mut params)
        };
        launched.map_err(failed(format!("launch of {kernel} ({launch:?})")))
    }

    pub(super) fn fork(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.side.wait_for(&self.main)
    }

    pub(super) fn join(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.main.wait_for(&self.side)
    }

    pub(super) fn finish_side(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.side.synchronize()
    }

    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.main.synchronize()
    }

    /// Makes the context current on this thread.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        self.context.enter()
    }

    /// The kernel, allowed `shared` bytes of dynamic shared memory.
    fn function(&self, kernel: &'static str, shared: u32) -> Result<sys::CUfunction, CudaError> {
        let mut functions = lock(&self.functions);
        let function = functions.get_mut(kernel).ok_or(CudaError::NoKernel(kernel))?;
        if shared > function.shared {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is one of a loaded module.
            unsafe { result::function::set_function_attribute(function.handle, attribute, shared as c_int) }
                .map_err(failed(format!("{shared} bytes of shared memory for {kernel}")))?;
            function.shared = shared;
        }
        Ok(function.handle)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Failures are of no consequence: nothing of it is used any more.
        let _ = self.synchronize();
        for module in self.modules.drain(..) {
            // SAFETY: it was loaded here, and all work has ended.
            let _ = unsafe { module::unload(module) };
        }
    }
}

/// Bytes of device memory that are free. The context must be current.
fn free_bytes() -> Result<usize, CudaError> {
    Ok(result::mem_get_info().map_err(failed("cuMemGetInfo"))?.0)
}

/// `bytes` bytes of device memory, of any contents. The context must be current.
pub(super) fn allocate(bytes: usize) -> Result<u64, CudaError> {
    // SAFETY: the context is current.
    match unsafe { result::malloc_sync(bytes) } {
        Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
            Err(CudaError::OutOfMemory { wanted: bytes, free: free_bytes()? })
        }
        address => address.map_err(failed(format!("cuMemAlloc of {bytes} bytes"))),
    }
}

/// Locks what a panic leaves as good as it was.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error of the call `call`.
pub(super) fn failed(call: impl Into<String>) -> impl FnOnce(DriverError) -> CudaError {
    move |error| {
        if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return CudaError::NoMemoryFor { call: call.into() };
        }
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(|_| "?".to_string(), |text| text.to_string_lossy().into_owned())
        };
        let reason = format!("{}: {}", text(error.error_name()), text(error.error_string()));
        CudaError::Driver { call: call.into(), reason }
    }
}

/// Measures the time that work of a device takes, on the device.
pub struct Stopwatch<'a> {
    gpu: &'a Gpu,
    events: [Event; 2],
}

impl<'a> Stopwatch<'a> {
    /// A stopwatch that runs from now on: from when all work until now is done. `None` for the emulator.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn start(device: &'a Device) -> Result<Option<Self>, CudaError> {
        #[allow(irrefutable_let_patterns, reason = "without the emulator there are GPUs only")]
        let Runtime::Gpu(gpu) = &*device.runtime else { return Ok(None) };
        gpu.enter()?;
        let stopwatch = Self { gpu, events: [Event::timed()?, Event::timed()?] };
        stopwatch.events[0].record(&gpu.main)?;
        Ok(Some(stopwatch))
    }

    /// Milliseconds until all work that was queued before now is done. Waits for that.
    ///
    /// # Errors
    /// [`CudaError::Driver`].
    pub fn stop(self) -> Result<f32, CudaError> {
        let [start, end] = &self.events;
        self.gpu.enter()?;
        end.record(&self.gpu.main)?;
        end.synchronize()?;
        // SAFETY: both events have happened.
        unsafe { event::elapsed(start.handle(), end.handle()) }.map_err(failed("cuEventElapsedTime"))
    }
}
