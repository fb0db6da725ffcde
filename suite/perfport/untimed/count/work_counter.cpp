// Oclgrind plugin: counts the work of each kernel launch, and writes every memory access if asked to.
//
// Executed instructions are counted one by one; what an instruction is worth (operations, bytes, data or addressing) is
// found once for each program, from its LLVM IR. docs/counting.md says what is counted and what is not.
//
//   PERFPORT_MARKS   file whose last line decides: launches count after a line that starts with "begin "
//   PERFPORT_COUNTS  file to which one line of JSON is appended for each launch that counts
//   PERFPORT_TRACE   optional file to which accesses of global, constant and local memory are appended (struct Access)
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include "oclgrind/Context.h"
#include "oclgrind/Kernel.h"
#include "oclgrind/KernelInvocation.h"
#include "oclgrind/Memory.h"
#include "oclgrind/Plugin.h"
#include "oclgrind/Program.h"
#include "oclgrind/WorkGroup.h"
#include "oclgrind/WorkItem.h"

namespace {

using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Value;

using Counters = std::map<std::string, uint64_t>;

// Ahead of the name of a function that is called and not known.
const char *const UNKNOWN = "unknown ";

const char *const SPACES[] = {"private", "global", "constant", "local"};

// One access of memory; all fields little-endian, no padding.
struct Access {
    uint32_t launch, instruction, group, item, occurrence, size;
    uint64_t address;
};
static_assert(sizeof(Access) == 32, "the trace's reader expects 32 bytes");

// ---------------------------------------------------------------------------------------------------------------------
// Built-in functions by their unmangled names.

// FP32 operations for each lane of the result.
const std::map<std::string, unsigned> ARITHMETIC = {
    {"fma", 2}, {"mad", 2}, {"mix", 3}, {"smoothstep", 7}, {"degrees", 1}, {"radians", 1}, {"fdim", 1}, {"fract", 1},
    {"divide", 1}, {"recip", 1},
};
const std::set<std::string> SPECIAL = {
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "logb", "pow", "pown", "powr", "rootn", "sqrt",
    "rsqrt", "cbrt", "hypot", "sin", "cos", "tan", "sinpi", "cospi", "tanpi", "asin", "acos", "atan",
    "asinpi", "acospi",
    "atanpi", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "atan2pi", "sincos", "erf", "erfc", "tgamma",
    "lgamma", "lgamma_r", "fmod", "remainder", "remquo",
};
// Operations for each lane, where the result is data.
const std::map<std::string, unsigned> INTEGER = {
    {"mad24", 2}, {"mad_hi", 2}, {"mad_sat", 2}, {"mul24", 1}, {"mul_hi", 1}, {"add_sat", 1}, {"sub_sat", 1},
    {"hadd", 1}, {"rhadd", 1}, {"abs_diff", 1}, {"rotate", 1}, {"popcount", 1}, {"clz", 1}, {"ctz", 1},
    {"upsample", 1}, {"bitselect", 1},
};
// Not counted as operations; reported under these names.
const std::map<std::string, std::string> UNCOUNTED = {
    {"fmin", "min_max"}, {"fmax", "min_max"}, {"min", "min_max"}, {"max", "min_max"}, {"clamp", "min_max"},
    {"minmag", "min_max"}, {"maxmag", "min_max"}, {"step", "min_max"},
    {"isequal", "compare"}, {"isnotequal", "compare"}, {"isgreater", "compare"}, {"isgreaterequal", "compare"},
    {"isless", "compare"}, {"islessequal", "compare"}, {"islessgreater", "compare"}, {"isfinite", "compare"},
    {"isinf", "compare"}, {"isnan", "compare"}, {"isnormal", "compare"}, {"isordered", "compare"},
    {"isunordered", "compare"}, {"signbit", "compare"}, {"any", "compare"}, {"all", "compare"},
    {"select", "select"}, {"shuffle", "select"}, {"shuffle2", "select"},
    {"fabs", "sign"}, {"abs", "sign"}, {"copysign", "sign"}, {"sign", "sign"}, {"nan", "sign"},
    {"floor", "convert"}, {"ceil", "convert"}, {"round", "convert"}, {"rint", "convert"}, {"trunc", "convert"},
    {"ldexp", "convert"}, {"frexp", "convert"}, {"modf", "convert"}, {"ilogb", "convert"}, {"nextafter", "convert"},
    {"get_global_id", "work_item_queries"}, {"get_local_id", "work_item_queries"},
    {"get_group_id", "work_item_queries"},
    {"get_global_size", "work_item_queries"}, {"get_local_size", "work_item_queries"},
    {"get_num_groups", "work_item_queries"}, {"get_work_dim", "work_item_queries"},
    {"get_global_offset", "work_item_queries"},
    {"barrier", "barrier_calls"}, {"work_group_barrier", "barrier_calls"}, {"mem_fence", "fences"},
    {"read_mem_fence", "fences"}, {"write_mem_fence", "fences"}, {"prefetch", "prefetches"},
    {"wait_group_events", "barrier_calls"}, {"async_work_group_copy", "async_copies"},
    {"async_work_group_strided_copy", "async_copies"},
};

bool startsWith(const std::string &text, const char *prefix) { return text.rfind(prefix, 0) == 0; }

// `_Z6vload4mPKf` -> `vload4`; other names as they are.
std::string unmangled(const llvm::Function &function) {
    const std::string name = function.getName().str();
    if (!startsWith(name, "_Z")) return name;
    size_t end = 2;
    while (end < name.size() && isdigit(name[end])) ++end;
    return name.substr(end, std::strtoul(name.c_str() + 2, nullptr, 10));
}

// The name without `native_`, `half_` or `fast_`: the same function at another accuracy.
std::string plain(const std::string &name) {
    for (const char *prefix : {"native_", "half_", "fast_"})
        if (startsWith(name, prefix)) return name.substr(std::strlen(prefix));
    return name;
}

const llvm::Function *calleeOf(const Value *value) {
    auto *call = dyn_cast<llvm::CallInst>(value);
    return call ? call->getCalledFunction() : nullptr;
}

// The name of the built-in function that an instruction calls; empty for anything else.
std::string builtin(const Value *value) {
    const llvm::Function *callee = calleeOf(value);
    if (!callee || !callee->isDeclaration() || callee->isIntrinsic()) return "";
    return unmangled(*callee);
}

bool isAtomic(const std::string &name) { return startsWith(name, "atomic_") || startsWith(name, "atom_"); }
bool isVectorLoad(const std::string &name) { return startsWith(name, "vload"); }
bool isVectorStore(const std::string &name) { return startsWith(name, "vstore"); }
bool isImageRead(const std::string &name) { return startsWith(name, "read_image"); }
bool isImageWrite(const std::string &name) { return startsWith(name, "write_image"); }

unsigned lanesOf(const llvm::Type *type) {
    auto *vector = dyn_cast<llvm::FixedVectorType>(type);
    return vector ? vector->getNumElements() : 1;
}

// Bytes as the source has them: three-component vectors are 12 bytes, not 16.
unsigned bytesOf(const llvm::DataLayout &layout, llvm::Type *type) {
    if (auto *vector = dyn_cast<llvm::FixedVectorType>(type))
        return vector->getNumElements() * layout.getTypeStoreSize(vector->getElementType());
    return layout.getTypeStoreSize(type);
}

// Integers wide enough to be data: conditions (i1) are not arithmetic.
bool isInteger(const Value *value) {
    const llvm::Type *type = value->getType()->getScalarType();
    return type->isIntegerTy() && !type->isIntegerTy(1);
}

bool isFloat(const Value *value) { return value->getType()->getScalarType()->isFloatingPointTy(); }

// The pointer operand of a built-in function, if it has one.
const Value *pointerArgument(const llvm::CallInst *call) {
    for (const Value *argument : call->args())
        if (argument->getType()->isPointerTy()) return argument;
    return nullptr;
}

unsigned spaceOf(const Value *pointer) { return pointer->getType()->getPointerAddressSpace(); }

// Pointer and address space of a memory instruction; nothing for images, which have no linear addresses.
const Value *addressOf(const Instruction *instruction, bool &store) {
    store = false;
    if (auto *load = dyn_cast<llvm::LoadInst>(instruction)) return load->getPointerOperand();
    if (auto *write = dyn_cast<llvm::StoreInst>(instruction)) {
        store = true;
        return write->getPointerOperand();
    }
    const std::string name = builtin(instruction);
    store = isVectorStore(name);
    if (isVectorLoad(name) || store) return pointerArgument(llvm::cast<llvm::CallInst>(instruction));
    return nullptr;
}

// ---------------------------------------------------------------------------------------------------------------------
// Which lanes of a vector anything uses: the optimiser computes whole vectors where the source has single components.

class Demand {
public:
    explicit Demand(const llvm::Function &function) {
        bool changed = true;
        while (changed) {
            changed = false;
            for (const Instruction &instruction : llvm::instructions(function)) {
                if (!instruction.getType()->isVectorTy()) continue;
                uint32_t lanes = 0;
                for (const llvm::Use &use : instruction.uses()) lanes |= by(use);
                uint32_t &known = m_lanes[&instruction];
                changed |= lanes != known;
                known = lanes;
            }
        }
    }

    unsigned lanes(const Instruction *instruction) const {
        const llvm::Type *type = instruction->getType();
        if (!type->isVectorTy()) return 1;
        auto found = m_lanes.find(instruction);
        return found == m_lanes.end() ? 0 : __builtin_popcount(found->second);
    }

private:
    std::unordered_map<const Value *, uint32_t> m_lanes;

    static uint32_t all(unsigned lanes) { return lanes >= 32 ? ~0u : (1u << lanes) - 1; }

    uint32_t by(const llvm::Use &use) const {
        const unsigned width = lanesOf(use->getType());
        auto *user = dyn_cast<Instruction>(use.getUser());
        if (!user) return all(width);
        auto found = m_lanes.find(user);
        const uint32_t wanted = found == m_lanes.end() ? 0 : found->second;
        if (auto *extract = dyn_cast<llvm::ExtractElementInst>(user)) {
            auto *index = dyn_cast<llvm::ConstantInt>(extract->getIndexOperand());
            return index ? 1u << index->getZExtValue() : all(width);
        }
        if (auto *insert = dyn_cast<llvm::InsertElementInst>(user)) {
            auto *index = dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
            return index ? wanted & ~(1u << index->getZExtValue()) : wanted;
        }
        if (auto *shuffle = dyn_cast<llvm::ShuffleVectorInst>(user)) {
            uint32_t lanes = 0;
            for (size_t lane = 0; lane < shuffle->getShuffleMask().size(); ++lane) {
                const int source = shuffle->getMaskValue(lane) - (use.getOperandNo() ? int(width) : 0);
                if ((wanted >> lane & 1) && source >= 0 && source < int(width)) lanes |= 1u << source;
            }
            return lanes;
        }
        const bool same = user->getType()->isVectorTy() && lanesOf(user->getType()) == width;
        const bool by_lane = isa<llvm::BinaryOperator>(user) || isa<llvm::UnaryOperator>(user) ||
                             isa<llvm::CmpInst>(user) || isa<llvm::CastInst>(user) || isa<llvm::SelectInst>(user) ||
                             isa<llvm::PHINode>(user) || isa<llvm::FreezeInst>(user) || byLane(user);
        return same && by_lane ? wanted : all(width);
    }

    static bool byLane(const Instruction *user) {
        if (auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(user))
            return intrinsic->getIntrinsicID() == llvm::Intrinsic::fmuladd ||
                   intrinsic->getIntrinsicID() == llvm::Intrinsic::fma;
        const std::string name = plain(builtin(user));
        return ARITHMETIC.count(name) || SPECIAL.count(name) || INTEGER.count(name);
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// Integer instructions that are arithmetic on data, by backward slices over a module.

class DataSlice {
public:
    explicit DataSlice(llvm::Module &module) {
        for (llvm::Function &function : module) {
            if (function.isDeclaration()) continue;
            findCounters(function);
            for (Instruction &instruction : llvm::instructions(function)) index(&instruction);
        }
        findLoaded(module);
        for (llvm::Function &function : module)
            for (Instruction &instruction : llvm::instructions(function)) findRoots(&instruction);
    }

    bool contains(const Value *value) const { return m_data.count(value); }

private:
    using Values = std::unordered_set<const Value *>;
    using Lists = std::unordered_map<const Value *, std::vector<const Value *>>;
    Values m_counters;  // loop counters and their updates
    Values m_loaded;    // values that depend on something loaded
    Values m_data;      // the answer
    Values m_seen[2];
    Lists m_calls;      // function -> its calls
    Lists m_returns;    // function -> values that it returns
    Lists m_stored;     // private array -> values stored there

    // A loop counter: a phi of a loop's header that the loop changes by an amount of no loop's making, and that a
    // condition of leaving the loop compares.
    void findCounters(llvm::Function &function) {
        llvm::DominatorTree tree(function);
        llvm::LoopInfo loops(tree);
        for (llvm::Loop *loop : loops.getLoopsInPreorder())
            for (llvm::PHINode &phi : loop->getHeader()->phis()) {
                if (!phi.getType()->isIntegerTy()) continue;
                std::vector<const Value *> steps;
                for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
                    if (loop->contains(phi.getIncomingBlock(i)) && !chain(phi.getIncomingValue(i), &phi, loop, steps))
                        steps.assign(1, nullptr);
                if (steps.empty() || !steps.front()) continue;
                Values own(steps.begin(), steps.end());
                own.insert(&phi);
                llvm::SmallVector<llvm::BasicBlock *, 8> exits;
                loop->getExitingBlocks(exits);
                const bool leaves = std::any_of(exits.begin(), exits.end(), [&](llvm::BasicBlock *block) {
                    auto *branch = dyn_cast<llvm::BranchInst>(block->getTerminator());
                    return branch && branch->isConditional() && compares(branch->getCondition(), own, 0);
                });
                if (leaves) m_counters.insert(own.begin(), own.end());
            }
    }

    // Whether a value is the phi after steps by loop-invariant amounts (several, where the loop was unrolled).
    static bool chain(Value *value, llvm::PHINode *phi, llvm::Loop *loop, std::vector<const Value *> &steps) {
        for (int depth = 0; depth < 64; ++depth) {
            if (value == phi) return !steps.empty();
            auto *step = dyn_cast<llvm::BinaryOperator>(value);
            if (!step) return false;
            steps.push_back(step);
            if (loop->isLoopInvariant(step->getOperand(1))) value = step->getOperand(0);
            else if (loop->isLoopInvariant(step->getOperand(0))) value = step->getOperand(1);
            else return false;
        }
        return false;
    }

    static bool compares(const Value *condition, const Values &own, int depth) {
        if (own.count(condition)) return true;
        auto *instruction = dyn_cast<Instruction>(condition);
        if (!instruction || depth > 8) return false;
        if (!isa<llvm::CmpInst>(instruction) && !isa<llvm::CastInst>(instruction) &&
            !isa<llvm::BinaryOperator>(instruction) && !isa<llvm::SelectInst>(instruction))
            return false;
        return std::any_of(instruction->op_begin(), instruction->op_end(),
                           [&](const llvm::Use &use) { return compares(use.get(), own, depth + 1); });
    }

    // The private arrays (or anything else) that a pointer may point into.
    void origins(const Value *pointer, Values &found, Values &seen) const {
        if (!seen.insert(pointer).second) return;
        auto *user = dyn_cast<llvm::User>(pointer);
        if (isa<llvm::AllocaInst>(pointer)) found.insert(pointer);
        else if (isa<llvm::GetElementPtrInst>(pointer) || isa<llvm::CastInst>(pointer) ||
                 isa<llvm::ConstantExpr>(pointer))
            origins(user->getOperand(0), found, seen);
        else if (isa<llvm::PHINode>(pointer) || isa<llvm::SelectInst>(pointer)) {
            for (const Value *operand : user->operands())
                if (operand->getType()->isPointerTy()) origins(operand, found, seen);
        } else if (auto *argument = dyn_cast<llvm::Argument>(pointer)) {
            auto calls = m_calls.find(argument->getParent());
            if (calls == m_calls.end()) found.insert(pointer);
            else
                for (const Value *call : calls->second)
                    origins(llvm::cast<llvm::CallInst>(call)->getArgOperand(argument->getArgNo()), found, seen);
        } else found.insert(pointer);
    }

    Values origins(const Value *pointer) const {
        Values found, seen;
        origins(pointer, found, seen);
        return found;
    }

    static bool isPrivate(const Value *pointer) { return spaceOf(pointer) == oclgrind::AddrSpacePrivate; }

    // First pass over the instructions: who calls, returns, and stores to private arrays.
    void index(Instruction *instruction) {
        if (const llvm::Function *callee = calleeOf(instruction); callee && !callee->isDeclaration())
            m_calls[callee].push_back(instruction);
        if (auto *end = dyn_cast<llvm::ReturnInst>(instruction); end && end->getReturnValue())
            m_returns[instruction->getFunction()].push_back(end->getReturnValue());
    }

    static const Value *storedValue(const Instruction *instruction) {
        if (auto *store = dyn_cast<llvm::StoreInst>(instruction)) return store->getValueOperand();
        if (isVectorStore(builtin(instruction))) return instruction->getOperand(0);
        return nullptr;
    }

    static bool isLoad(const Instruction *instruction) {
        return isa<llvm::LoadInst>(instruction) || isVectorLoad(builtin(instruction));
    }

    // Everything that depends on a load from memory that is not private, an atomic's result or an image.
    void findLoaded(llvm::Module &module) {
        std::deque<const Value *> queue;
        auto add = [&](const Value *value) {
            if (m_loaded.insert(value).second) queue.push_back(value);
        };
        Lists readers;  // private array -> loads from it
        for (llvm::Function &function : module)
            for (Instruction &instruction : llvm::instructions(function)) {
                bool store = false;
                const Value *pointer = addressOf(&instruction, store);
                const std::string name = builtin(&instruction);
                if (isAtomic(name) || isImageRead(name)) add(&instruction);
                if (!pointer) continue;
                if (!isPrivate(pointer)) {
                    if (!store) add(&instruction);
                    continue;
                }
                for (const Value *origin : origins(pointer))
                    if (store) m_stored[origin].push_back(storedValue(&instruction));
                    else readers[origin].push_back(&instruction);
            }
        while (!queue.empty()) {
            const Value *value = queue.front();
            queue.pop_front();
            for (const llvm::Use &use : value->uses()) {
                auto *user = dyn_cast<Instruction>(use.getUser());
                if (!user) continue;
                if (storedValue(user) == value) {
                    bool store = false;
                    const Value *pointer = addressOf(user, store);
                    if (isPrivate(pointer))
                        for (const Value *origin : origins(pointer))
                            for (const Value *reader : readers[origin]) add(reader);
                } else if (isLoad(user)) {
                    continue;  // it is the address
                } else if (isa<llvm::ReturnInst>(user)) {
                    for (const Value *call : m_calls[user->getFunction()]) add(call);
                } else if (const llvm::Function *callee = calleeOf(user); callee && !callee->isDeclaration()) {
                    if (use.getOperandNo() < callee->arg_size()) add(callee->getArg(use.getOperandNo()));
                } else {
                    add(user);
                }
            }
        }
    }

    // Where data ends: stored values, atomic operands, image writes, conversions to floating point; and conditions.
    void findRoots(Instruction *instruction) {
        bool store = false;
        const Value *pointer = addressOf(instruction, store);
        const std::string name = builtin(instruction);
        if (store) {
            if (!isPrivate(pointer)) slice(storedValue(instruction), false);
            return;
        }
        if (isAtomic(name) || isImageWrite(name)) {
            auto *call = llvm::cast<llvm::CallInst>(instruction);
            const unsigned first = isImageWrite(name) ? call->arg_size() - 1 : 1;
            for (unsigned i = first; i < call->arg_size(); ++i) slice(call->getArgOperand(i), false);
        } else if (isa<llvm::SIToFPInst>(instruction) || isa<llvm::UIToFPInst>(instruction) ||
                   (isa<llvm::BitCastInst>(instruction) && isFloat(instruction))) {
            slice(instruction->getOperand(0), false);
        } else if (auto *branch = dyn_cast<llvm::BranchInst>(instruction)) {
            if (branch->isConditional()) slice(branch->getCondition(), true);
        } else if (auto *many = dyn_cast<llvm::SwitchInst>(instruction)) {
            slice(many->getCondition(), true);
        } else if (auto *choice = dyn_cast<llvm::SelectInst>(instruction)) {
            slice(choice->getCondition(), true);
        } else if (name == "select") {
            slice(instruction->getOperand(2), true);
        } else if (!name.empty() && isFloat(instruction) && !isLoad(instruction) && !isImageRead(name)) {
            for (const Value *argument : llvm::cast<llvm::CallInst>(instruction)->args()) slice(argument, false);
        }
    }

    // Backward from a value; `decision`: only through what depends on loaded data.
    void slice(const Value *from, bool decision) {
        std::vector<const Value *> stack{from};
        while (!stack.empty()) {
            const Value *value = stack.back();
            stack.pop_back();
            if (!value->getType()->getScalarType()->isIntegerTy() || m_counters.count(value)) continue;
            if (decision && !m_loaded.count(value)) continue;
            if (!m_seen[decision].insert(value).second) continue;
            if (auto *argument = dyn_cast<llvm::Argument>(value)) {
                for (const Value *call : m_calls[argument->getParent()])
                    stack.push_back(llvm::cast<llvm::CallInst>(call)->getArgOperand(argument->getArgNo()));
                continue;
            }
            auto *instruction = dyn_cast<Instruction>(value);
            if (!instruction) continue;
            if (isLoad(instruction)) {
                bool store = false;
                const Value *pointer = addressOf(instruction, store);
                if (isPrivate(pointer))
                    for (const Value *origin : origins(pointer))
                        for (const Value *stored : m_stored[origin]) stack.push_back(stored);
                continue;
            }
            const llvm::Function *callee = calleeOf(instruction);
            if (callee && !callee->isDeclaration()) {
                for (const Value *result : m_returns[callee]) stack.push_back(result);
                continue;
            }
            const std::string name = builtin(instruction);
            if (isAtomic(name) || isImageRead(name)) continue;
            if (isa<llvm::BinaryOperator>(instruction) || callee) m_data.insert(instruction);
            if (auto *choice = dyn_cast<llvm::SelectInst>(instruction)) {
                stack.push_back(choice->getTrueValue());
                stack.push_back(choice->getFalseValue());
            } else if (isa<llvm::ExtractElementInst>(instruction)) {
                stack.push_back(instruction->getOperand(0));
            } else if (isa<llvm::InsertElementInst>(instruction)) {
                stack.push_back(instruction->getOperand(0));
                stack.push_back(instruction->getOperand(1));
            } else if (name == "select") {
                stack.push_back(instruction->getOperand(0));
                stack.push_back(instruction->getOperand(1));
            } else {
                for (const Value *operand : instruction->operands()) stack.push_back(operand);
            }
        }
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// What one execution of an instruction counts.

class Worth {
public:
    Worth(const llvm::DataLayout &layout, const DataSlice &slice) : m_layout(layout), m_slice(slice) {}

    Counters of(const Instruction *instruction, const Demand &demand) {
        m_counters.clear();
        const unsigned lanes = demand.lanes(instruction);
        if (auto *binary = dyn_cast<llvm::BinaryOperator>(instruction)) arithmetic(binary, lanes);
        else if (instruction->getOpcode() == Instruction::FNeg) add("sign", lanes);
        else if (isa<llvm::CmpInst>(instruction)) add("compare", lanes);
        else if (isa<llvm::SelectInst>(instruction)) add("select", lanes);
        else if (isa<llvm::FPToSIInst>(instruction) || isa<llvm::FPToUIInst>(instruction) ||
                 isa<llvm::SIToFPInst>(instruction) || isa<llvm::UIToFPInst>(instruction) ||
                 isa<llvm::FPExtInst>(instruction) || isa<llvm::FPTruncInst>(instruction))
            add("convert", lanes);
        else if (auto *load = dyn_cast<llvm::LoadInst>(instruction))
            memory("load", spaceOf(load->getPointerOperand()), bytesOf(m_layout, load->getType()));
        else if (auto *store = dyn_cast<llvm::StoreInst>(instruction))
            memory("store", spaceOf(store->getPointerOperand()),
                   bytesOf(m_layout, store->getValueOperand()->getType()));
        else if (isa<llvm::BranchInst>(instruction) || isa<llvm::SwitchInst>(instruction)) add("branches", 1);
        else if (auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(instruction)) this->intrinsic(intrinsic, lanes);
        else if (auto *call = dyn_cast<llvm::CallInst>(instruction)) {
            const llvm::Function *callee = call->getCalledFunction();
            if (callee && callee->isDeclaration()) function(call, unmangled(*callee), lanes);
        }
        return m_counters;
    }

private:
    const llvm::DataLayout &m_layout;
    const DataSlice &m_slice;
    Counters m_counters;

    void add(const std::string &name, uint64_t count) {
        if (count) m_counters[name] += count;
    }

    void memory(const std::string &kind, unsigned space, unsigned bytes) {
        const std::string name = std::string(SPACES[space < 4 ? space : 0]) + "_" + kind;
        add(name + "s", 1);
        add(name + "_bytes", bytes);
    }

    // `fp32_add` and so on; other precisions are kept apart as a whole.
    void floating(const llvm::Type *type, const char *what, uint64_t operations) {
        const llvm::Type *scalar = type->getScalarType();
        if (scalar->isFloatTy()) add(std::string("fp32_") + what, operations);
        else add(scalar->isDoubleTy() ? "fp64" : "fp16", operations);
    }

    void special(const llvm::Type *type, uint64_t calls) {
        add(type->getScalarType()->isDoubleTy() ? "fp64_special" : "special", calls);
    }

    void arithmetic(const llvm::BinaryOperator *binary, unsigned lanes) {
        switch (binary->getOpcode()) {
        case Instruction::FAdd:
        case Instruction::FSub: floating(binary->getType(), "add", lanes); return;
        case Instruction::FMul: floating(binary->getType(), "mul", lanes); return;
        case Instruction::FDiv: floating(binary->getType(), "div", lanes); return;
        case Instruction::FRem: special(binary->getType(), lanes); return;
        default: break;
        }
        if (!isInteger(binary)) add("conditions", lanes);
        else if (isNegation(binary)) add("sign", lanes);
        else if (!m_slice.contains(binary)) add("integer_addressing", lanes);
        else if (!inDotProduct(binary) || binary->getOpcode() == Instruction::Mul ||
                 binary->getOpcode() == Instruction::Add)
            add("integer_data", lanes);
    }

    static bool isNegation(const llvm::BinaryOperator *binary) {
        auto *minuend = dyn_cast<llvm::Constant>(binary->getOperand(0));
        return binary->getOpcode() == Instruction::Sub && minuend && minuend->isNullValue();
    }

    // The dialect's 8-bit dot product is one instruction of 8 operations where a device has it: of its emulation the
    // multiplications and additions count, the unpacking does not.
    static bool inDotProduct(const Instruction *instruction) {
        for (const llvm::DILocation *at = instruction->getDebugLoc().get(); at; at = at->getInlinedAt())
            if (at->getScope()->getSubprogram()->getName() == "dot4_u8") return true;
        return false;
    }

    void intrinsic(const llvm::IntrinsicInst *call, unsigned lanes) {
        switch (call->getIntrinsicID()) {
        case llvm::Intrinsic::fmuladd:
        case llvm::Intrinsic::fma: floating(call->getType(), "fma", 2 * lanes); return;
        case llvm::Intrinsic::memcpy:
        case llvm::Intrinsic::memmove:
        case llvm::Intrinsic::memset: {
            auto *length = dyn_cast<llvm::ConstantInt>(call->getArgOperand(2));
            const unsigned bytes = length ? length->getZExtValue() : 0;
            memory("store", spaceOf(call->getArgOperand(0)), bytes);
            if (call->getIntrinsicID() != llvm::Intrinsic::memset)
                memory("load", spaceOf(call->getArgOperand(1)), bytes);
            return;
        }
        case llvm::Intrinsic::lifetime_start:
        case llvm::Intrinsic::lifetime_end:
        case llvm::Intrinsic::dbg_declare:
        case llvm::Intrinsic::dbg_value:
        case llvm::Intrinsic::dbg_label:
        case llvm::Intrinsic::assume: return;
        case llvm::Intrinsic::fabs:
        case llvm::Intrinsic::copysign: add("sign", lanes); return;
        case llvm::Intrinsic::smin:
        case llvm::Intrinsic::smax:
        case llvm::Intrinsic::umin:
        case llvm::Intrinsic::umax:
        case llvm::Intrinsic::minnum:
        case llvm::Intrinsic::maxnum: add("min_max", lanes); return;
        case llvm::Intrinsic::abs: add("sign", lanes); return;
        case llvm::Intrinsic::fshl:
        case llvm::Intrinsic::fshr:
        case llvm::Intrinsic::ctpop:
        case llvm::Intrinsic::ctlz:
        case llvm::Intrinsic::cttz:
        case llvm::Intrinsic::uadd_sat:
        case llvm::Intrinsic::sadd_sat:
        case llvm::Intrinsic::usub_sat:
        case llvm::Intrinsic::ssub_sat:
            add(m_slice.contains(call) ? "integer_data" : "integer_addressing", lanes);
            return;
        default: add(UNKNOWN + call->getCalledFunction()->getName().str(), 1);
        }
    }

    void function(const llvm::CallInst *call, const std::string &full, unsigned lanes) {
        const std::string name = plain(full);
        const Value *first = call->arg_size() ? call->getArgOperand(0) : nullptr;
        if (auto uncounted = UNCOUNTED.find(name); uncounted != UNCOUNTED.end()) return add(uncounted->second, lanes);
        if (startsWith(name, "convert_")) return add("convert", lanes);
        for (const char *nothing : {"as_", "get_image", "printf", "__translate_sampler"})
            if (startsWith(name, nothing)) return;
        if (isVectorLoad(name) || isVectorStore(name)) return vectorMemory(call, name);
        if (isImageRead(name)) {
            add("image_reads", 1);
            return add("image_read_bytes", bytesOf(m_layout, call->getType()));
        }
        if (isImageWrite(name)) {
            add("image_writes", 1);
            return add("image_write_bytes", bytesOf(m_layout, call->getArgOperand(call->arg_size() - 1)->getType()));
        }
        if (isAtomic(name)) return add(std::string(SPACES[spaceOf(pointerArgument(call)) & 3]) + "_atomics", 1);
        if (auto known = ARITHMETIC.find(name); known != ARITHMETIC.end()) {
            const bool one = known->second == 2;
            return floating(call->getType(), one ? "fma" : "builtin", uint64_t(known->second) * lanes);
        }
        if (SPECIAL.count(name)) return special(call->getType(), name == "sincos" ? 2 * lanes : lanes);
        if (auto known = INTEGER.find(name); known != INTEGER.end())
            return add(m_slice.contains(call) ? "integer_data" : "integer_addressing", uint64_t(known->second) * lanes);
        if (first && isFloat(first) && geometric(call, name, lanesOf(first->getType()))) return;
        add(UNKNOWN + full, 1);
    }

    bool geometric(const llvm::CallInst *call, const std::string &name, unsigned n) {
        const llvm::Type *type = call->getType();
        if (name == "dot") floating(type, "builtin", 2 * n - 1);
        else if (name == "length") floating(type, "builtin", 2 * n - 1);
        else if (name == "distance" || name == "normalize") floating(type, "builtin", 3 * n - 1);
        else if (name == "cross") floating(type, "builtin", 9);
        else return false;
        if (name == "length" || name == "distance" || name == "normalize") special(type, 1);
        return true;
    }

    void vectorMemory(const llvm::CallInst *call, const std::string &name) {
        const bool load = isVectorLoad(name);
        llvm::Type *type = load ? call->getType() : call->getArgOperand(0)->getType();
        const unsigned lanes = lanesOf(type);
        const bool half = name.find("_half") != std::string::npos;
        memory(load ? "load" : "store", spaceOf(pointerArgument(call)), half ? 2 * lanes : bytesOf(m_layout, type));
    }
};

// ---------------------------------------------------------------------------------------------------------------------

class WorkCounter : public oclgrind::Plugin {
public:
    explicit WorkCounter(const oclgrind::Context *context) : Plugin(context) {
        const char *marks = std::getenv("PERFPORT_MARKS"), *counts = std::getenv("PERFPORT_COUNTS");
        if (!marks || !counts) return;
        m_marks = marks;
        std::ifstream earlier(counts);  // another process wrote these
        std::string line;
        while (std::getline(earlier, line)) ++m_launch;
        m_counts = std::fopen(counts, "a");
        if (const char *trace = std::getenv("PERFPORT_TRACE")) m_trace = std::fopen(trace, "ab");
    }

    ~WorkCounter() override {
        if (m_counts) std::fclose(m_counts);
        if (m_trace) std::fclose(m_trace);
    }

    bool isThreadSafe() const override { return false; }  // Oclgrind then runs one work-group after another

    void kernelBegin(const oclgrind::KernelInvocation *launch) override {
        m_case = m_counts ? marked() : "";
        if (m_case.empty()) return;
        m_totals.clear();
        m_accesses.clear();
        const oclgrind::Kernel *kernel = launch->getKernel();
        if (kernel->getProgram()->getUID() != m_program || kernel->getFunction()->getParent() != m_module)
            analyse(kernel);
        for (auto &[instruction, number] : m_numbers) m_executed[number] = 0;
    }

    void kernelEnd(const oclgrind::KernelInvocation *launch) override {
        if (m_case.empty()) return;
        for (size_t number = 0; number < m_executed.size(); ++number)
            for (auto &[name, count] : m_worth[number]) m_totals[name] += count * m_executed[number];
        write(launch);
        m_case.clear();
        ++m_launch;
    }

    void instructionExecuted(const oclgrind::WorkItem *, const Instruction *instruction,
                             const oclgrind::TypedValue &) override {
        if (m_case.empty()) return;
        auto found = m_numbers.find(instruction);
        if (found != m_numbers.end()) ++m_executed[found->second];
    }

    void workGroupBegin(const oclgrind::WorkGroup *) override {
        if (m_case.empty()) return;
        ++m_totals["work_groups"];
        m_occurrences.clear();
    }
    void workGroupBarrier(const oclgrind::WorkGroup *, uint32_t) override { count("barriers", 1); }
    void workItemBegin(const oclgrind::WorkItem *) override { count("work_items", 1); }

    void memoryLoad(const oclgrind::Memory *memory, const oclgrind::WorkItem *item, size_t address,
                    size_t size) override {
        access(memory, item, address, size);
    }
    void memoryStore(const oclgrind::Memory *memory, const oclgrind::WorkItem *item, size_t address, size_t size,
                     const uint8_t *) override {
        access(memory, item, address, size);
    }
    // Asynchronous copies, which a whole work-group makes.
    void memoryLoad(const oclgrind::Memory *memory, const oclgrind::WorkGroup *, size_t, size_t size) override {
        count(std::string(SPACES[memory->getAddressSpace() & 3]) + "_load_bytes", size);
    }
    void memoryStore(const oclgrind::Memory *memory, const oclgrind::WorkGroup *, size_t, size_t size,
                     const uint8_t *) override {
        count(std::string(SPACES[memory->getAddressSpace() & 3]) + "_store_bytes", size);
    }

private:
    std::string m_marks, m_case;
    FILE *m_counts = nullptr, *m_trace = nullptr;
    uint32_t m_launch = 0;
    unsigned long m_program = 0;
    const llvm::Module *m_module = nullptr;
    std::unordered_map<const Instruction *, uint32_t> m_numbers;
    std::vector<uint64_t> m_executed;
    std::vector<Counters> m_worth;
    Counters m_totals;
    std::map<uint32_t, const Instruction *> m_accesses;                              // those of this launch
    std::unordered_map<const oclgrind::WorkItem *, std::unordered_map<uint32_t, uint32_t>> m_occurrences;

    // The variant that the last mark begins, if it begins one.
    std::string marked() const {
        std::ifstream file(m_marks);
        std::string line, last;
        while (std::getline(file, line)) last = line;
        return startsWith(last, "begin ") ? last.substr(6) : "";
    }

    void count(const std::string &name, uint64_t by) {
        if (!m_case.empty()) m_totals[name] += by;
    }

    void analyse(const oclgrind::Kernel *kernel) {
        auto *module = const_cast<llvm::Module *>(kernel->getFunction()->getParent());
        m_program = kernel->getProgram()->getUID();
        m_module = module;
        m_numbers.clear();
        m_worth.clear();
        const DataSlice slice(*module);
        Worth worth(module->getDataLayout(), slice);
        for (llvm::Function &function : *module) {
            const Demand demand(function);
            for (Instruction &instruction : llvm::instructions(function)) {
                m_numbers[&instruction] = m_worth.size();
                m_worth.push_back(worth.of(&instruction, demand));
            }
        }
        m_executed.assign(m_worth.size(), 0);
    }

    void access(const oclgrind::Memory *memory, const oclgrind::WorkItem *item, size_t address, size_t size) {
        if (m_case.empty() || !m_trace || memory->getAddressSpace() == oclgrind::AddrSpacePrivate) return;
        const Instruction *instruction = item->getCurrentInstruction();
        auto number = m_numbers.find(instruction);
        bool store = false;
        if (number == m_numbers.end() || !addressOf(instruction, store)) return;
        m_accesses[number->second] = instruction;
        const oclgrind::Size3 local = item->getLocalID(), group = item->getWorkGroup()->getGroupSize();
        const Access record = {
            m_launch, number->second, uint32_t(item->getWorkGroup()->getGroupIndex()),
            uint32_t(local.x + group.x * (local.y + group.y * local.z)), m_occurrences[item][number->second]++,
            uint32_t(size), address,
        };
        std::fwrite(&record, sizeof record, 1, m_trace);
    }

    void write(const oclgrind::KernelInvocation *launch) {
        const oclgrind::Kernel *kernel = launch->getKernel();
        llvm::json::Object counters, arguments;
        std::map<unsigned, std::pair<std::string, std::string>> names; // argument -> its buffer and name
        llvm::json::Array unknown, accesses;
        for (auto &[name, count] : m_totals) {
            if (count && startsWith(name, UNKNOWN)) unknown.push_back(name.substr(std::strlen(UNKNOWN)));
            else if (count) counters[name] = int64_t(count);
        }
        for (auto &[number, instruction] : m_accesses) accesses.push_back(describe(number, instruction));
        if (m_trace)
            for (auto value = kernel->values_begin(); value != kernel->values_end(); ++value) {
                auto *argument = dyn_cast<llvm::Argument>(value->first);
                if (!argument || !argument->getType()->isPointerTy()) continue;
                if (spaceOf(argument) == oclgrind::AddrSpaceLocal) continue;
                const size_t buffer = m_context->getGlobalMemory()->extractBuffer(value->second.getPointer());
                names[argument->getArgNo()] = {std::to_string(buffer), argument->getName().str()};
            }
        for (auto &[number, named] : names) {
            auto known = arguments.try_emplace(named.first, named.second);
            if (!known.second) known.first->second = known.first->second.getAsString()->str() + "=" + named.second;
        }
        llvm::json::Object line{{"launch", int64_t(m_launch)},      {"case", m_case},
                                {"kernel", kernel->getName()},      {"counters", std::move(counters)},
                                {"unknown", std::move(unknown)},    {"accesses", std::move(accesses)},
                                {"arguments", std::move(arguments)}};
        std::string text;
        llvm::raw_string_ostream stream(text);
        stream << llvm::json::Value(std::move(line)) << "\n";
        std::fputs(stream.str().c_str(), m_counts);
        std::fflush(m_counts);
        if (m_trace) std::fflush(m_trace);
    }

    static llvm::json::Object describe(uint32_t number, const Instruction *instruction) {
        bool store = false;
        const unsigned space = spaceOf(addressOf(instruction, store));
        const llvm::DILocation *at = instruction->getDebugLoc().get();
        while (at && at->getInlinedAt()) at = at->getInlinedAt();
        return llvm::json::Object{{"instruction", int64_t(number)},
                                  {"line", at ? int64_t(at->getLine()) : 0},
                                  {"column", at ? int64_t(at->getColumn()) : 0},
                                  {"file", at ? at->getFilename().str() : ""},
                                  {"space", SPACES[space & 3]},
                                  {"store", store}};
    }
};

WorkCounter *counter = nullptr;

} // namespace

extern "C" {
void initializePlugins(oclgrind::Context *context) {
    counter = new WorkCounter(context);
    context->registerPlugin(counter);
}
void releasePlugins(oclgrind::Context *context) {
    context->unregisterPlugin(counter);
    delete counter;
}
}
