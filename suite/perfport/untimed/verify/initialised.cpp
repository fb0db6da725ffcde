// Oclgrind plugin: reports loads of global, constant and local memory that nothing has written before.
//
// Oclgrind's own checker follows undefined values through registers. Version 21.10 loses track of them at image reads and
// wide vectors (false findings) and does not know LLVM's `freeze` (it gives up), so this one looks at memory alone.
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <oclgrind/Context.h>
#include <oclgrind/Memory.h>
#include <oclgrind/Plugin.h>

using namespace oclgrind;

class Initialised : public Plugin {
  typedef std::pair<const Memory *, size_t> Key; // a memory and the address of an allocation in it
  std::map<Key, std::vector<bool>> m_written;
  std::mutex m_mutex;

  // The allocation that holds an address, and the address's offset in it.
  std::vector<bool> *find(const Memory *memory, size_t address, size_t &offset) {
    auto it = m_written.upper_bound(Key(memory, address));
    if (it == m_written.begin())
      return nullptr;
    --it;
    if (it->first.first != memory)
      return nullptr;
    offset = address - it->first.second;
    return offset < it->second.size() ? &it->second : nullptr;
  }

  void store(const Memory *memory, size_t address, size_t size) {
    std::lock_guard<std::mutex> lock(m_mutex);
    size_t offset;
    if (std::vector<bool> *bytes = find(memory, address, offset))
      for (size_t i = offset; i < offset + size && i < bytes->size(); ++i)
        (*bytes)[i] = true;
  }

  void load(const Memory *memory, size_t address, size_t size) {
    if (memory->getAddressSpace() == AddrSpacePrivate)
      return;
    bool unwritten = false;
    {
      std::lock_guard<std::mutex> lock(m_mutex);
      size_t offset;
      if (std::vector<bool> *bytes = find(memory, address, offset))
        for (size_t i = offset; i < offset + size && i < bytes->size(); ++i)
          unwritten |= !(*bytes)[i];
    }
    if (!unwritten)
      return;
    Context::Message message(ERROR, m_context);
    message << "Uninitialised read of size " << size << " at "
            << (memory->getAddressSpace() == AddrSpaceLocal ? "local" : "global") << " memory address 0x" << std::hex
            << address << std::endl
            << Context::Message::INDENT << "Kernel: " << Context::Message::CURRENT_KERNEL << std::endl
            << "Entity: " << Context::Message::CURRENT_ENTITY << std::endl
            << Context::Message::CURRENT_LOCATION << std::endl;
    message.send();
  }

public:
  explicit Initialised(const Context *context) : Plugin(context) {}
  bool isThreadSafe() const override { return true; }

  void memoryAllocated(const Memory *memory, size_t address, size_t size, cl_mem_flags, const uint8_t *data) override {
    std::lock_guard<std::mutex> lock(m_mutex);
    m_written[Key(memory, address)] = std::vector<bool>(size, data != nullptr);
  }
  void memoryDeallocated(const Memory *memory, size_t address) override {
    std::lock_guard<std::mutex> lock(m_mutex);
    m_written.erase(Key(memory, address));
  }
  void hostMemoryStore(const Memory *memory, size_t address, size_t size, const uint8_t *) override {
    store(memory, address, size);
  }
  void memoryMap(const Memory *memory, size_t address, size_t offset, size_t size, cl_map_flags flags) override {
    if (flags != CL_MAP_READ)
      store(memory, address + offset, size);
  }
  void memoryStore(const Memory *memory, const WorkItem *, size_t address, size_t size, const uint8_t *) override {
    store(memory, address, size);
  }
  void memoryStore(const Memory *memory, const WorkGroup *, size_t address, size_t size, const uint8_t *) override {
    store(memory, address, size);
  }
  void memoryAtomicStore(const Memory *memory, const WorkItem *, AtomicOp, size_t address, size_t size) override {
    store(memory, address, size);
  }
  void memoryLoad(const Memory *memory, const WorkItem *, size_t address, size_t size) override {
    load(memory, address, size);
  }
  void memoryLoad(const Memory *memory, const WorkGroup *, size_t address, size_t size) override {
    load(memory, address, size);
  }
  void memoryAtomicLoad(const Memory *memory, const WorkItem *, AtomicOp, size_t address, size_t size) override {
    load(memory, address, size);
  }
};

static Plugin *instance = nullptr;

extern "C" {
void initializePlugins(Context *context) {
  instance = new Initialised(context);
  context->registerPlugin(instance);
}
void releasePlugins(Context *context) {
  context->unregisterPlugin(instance);
  delete instance;
}
}
