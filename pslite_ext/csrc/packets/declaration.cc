#include "packets/declaration.h"

#include <cmath>
#include <cstring>

#include "base/little_endian.h"

namespace mercury {
namespace {

constexpr size_t kDeclarationBytes = 40;  // before the name
static_assert(kDeclarationBytes + kTensorNameBytesMax == kDeclarationBytesMax);

}  // namespace

std::string Encode(const Declaration& declaration) {
  uint8_t bytes[kDeclarationBytes] = {};
  Store<uint64_t>(&bytes[0], declaration.key);
  Store<uint64_t>(&bytes[8], declaration.elements);
  bytes[16] = static_cast<uint8_t>(declaration.dtype);
  bytes[17] = declaration.codec;
  bytes[18] = declaration.asynchronous ? 1 : 0;
  Store<uint32_t>(&bytes[20], declaration.index);
  uint32_t parameter;
  std::memcpy(&parameter, &declaration.parameter, sizeof(parameter));
  Store<uint32_t>(&bytes[24], parameter);
  Store<uint32_t>(&bytes[28], declaration.workers);
  Store<uint64_t>(&bytes[32], declaration.row_elements);
  std::string text(reinterpret_cast<const char*>(bytes), sizeof(bytes));
  return text + declaration.name.substr(0, kTensorNameBytesMax);
}

Status Decode(const char* text, size_t size, Declaration* declaration) {
  if (size < kDeclarationBytes) return Status::Corrupt("a declaration that is cut off");
  const auto* bytes = reinterpret_cast<const uint8_t*>(text);
  declaration->key = Load<uint64_t>(&bytes[0]);
  declaration->elements = Load<uint64_t>(&bytes[8]);
  declaration->dtype = static_cast<DType>(bytes[16]);
  const size_t element_bytes = ElementBytes(declaration->dtype);
  if (element_bytes == 0) {
    return Status::Corrupt("a tensor of the unknown type " + std::to_string(bytes[16]));
  }
  if (declaration->elements > kTensorBytesMax / element_bytes) {
    return Status::Corrupt("a tensor of " + std::to_string(declaration->elements) + " elements");
  }
  declaration->codec = bytes[17];
  const Codec* codec = FindCodec(bytes[17]);
  if (codec == nullptr || codec->dtype != declaration->dtype) {
    return Status::Corrupt("a tensor of " + std::string(Name(declaration->dtype)) +
                           " in the unknown codec " + std::to_string(bytes[17]));
  }
  const auto parameter = Load<uint32_t>(&bytes[24]);
  std::memcpy(&declaration->parameter, &parameter, sizeof(parameter));
  declaration->asynchronous = bytes[18] == 1;
  declaration->index = Load<uint32_t>(&bytes[20]);
  declaration->workers = Load<uint32_t>(&bytes[28]);
  declaration->row_elements = Load<uint64_t>(&bytes[32]);
  const uint64_t row = declaration->row_elements;
  // A row may be of more elements than there are: of none.
  const bool rows =
      row == 0 || (row <= kTensorBytesMax / element_bytes && declaration->elements % row == 0 &&
                   codec->plain && !declaration->asynchronous);
  const bool alone = !codec->back || declaration->asynchronous || row != 0;
  if (!rows || (alone && declaration->workers != 1) || bytes[18] > 1 || bytes[19] != 0 ||
      declaration->workers == 0 || !std::isfinite(declaration->parameter)) {
    return Status::Corrupt("a declaration that makes no sense");
  }
  declaration->name.assign(text + kDeclarationBytes, size - kDeclarationBytes);
  return Status::Ok();
}

}  // namespace mercury
