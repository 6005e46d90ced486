#include "base/hmac_sha256.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness.h"
#include "hex.h"

using namespace mercury;
using mercury::testing::Random;

namespace {

std::string Hex(const Digest& digest) { return testing::Hex(digest.data(), digest.size()); }

Digest Hash(const std::string& text) {
  Sha256 hash;
  hash.Update(text.data(), text.size());
  return hash.Finish();
}

std::string HexHmac(const std::string& key, const std::string& text) {
  return Hex(HmacKey(key).Sign(text.data(), text.size()));
}

}  // namespace

TEST(sha256_of_the_standards_examples) {  // FIPS 180-4, NIST's example values
  CHECK_EQ(Hex(Hash("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(Hex(Hash("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(Hex(Hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_EQ(Hex(Hash("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                    "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu")),
           "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK_EQ(Hex(Hash(std::string(1000000, 'a'))),
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256_of_every_length_around_the_padding) {
  // The hash of the hashes of bytes 0, 1, 2, ... of length 0 to 200, computed with Python's
  // hashlib.
  Sha256 chain;
  std::string text;
  for (int length = 0; length <= 200; ++length) {
    const Digest digest = Hash(text);
    chain.Update(digest.data(), digest.size());
    text += static_cast<char>(length);
  }
  CHECK_EQ(Hex(chain.Finish()), "64ef7c229fce2408b5336b6a542fea0e078c3a87d2da85cb3fc52e2008b65021");
}

TEST(hmac_of_rfc_4231) {
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  CHECK_EQ(HexHmac(std::string(20, '\x0b'), "Hi There"),
           "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK_EQ(HexHmac("Jefe", "what do ya want for nothing?"),
           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK_EQ(HexHmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
           "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK_EQ(HexHmac(counting, std::string(50, '\xcd')),
           "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  CHECK_EQ(HexHmac(std::string(20, '\x0c'), "Test With Truncation").substr(0, 32),
           "a3b6167473100ee06e0c796c2955552b");
  CHECK_EQ(
      HexHmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK_EQ(HexHmac(std::string(131, '\xaa'),
                   "This is a test using a larger than block-size key and a larger than block-size "
                   "data. The key needs to be hashed before being used by the HMAC algorithm."),
           "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(pieces_sign_as_the_whole_does) {
  Random random;
  for (int round = 0; round < 500; ++round) {
    std::string key(random.Below(200), 0);
    random.Fill(key.data(), key.size());
    std::vector<uint8_t> text(random.Below(600));
    random.Fill(text.data(), text.size());
    const HmacKey hmac(key);
    HmacKey::MacStream stream(hmac);
    for (size_t at = 0; at < text.size();) {
      const size_t taken = std::min<size_t>(random.Below(150), text.size() - at);
      stream.Update(text.data() + at, taken);  // sometimes nothing
      at += taken;
    }
    CHECK_EQ(Hex(stream.Finish()), Hex(hmac.Sign(text.data(), text.size())));
  }
}

TEST(a_key_signs_any_number_of_times) {
  const HmacKey key("Jefe");
  const Digest first = key.Sign("text", 4);
  CHECK_EQ(Hex(key.Sign("text", 4)), Hex(first));
  CHECK_TRUE(key.Sign("texu", 4) != first);
  CHECK_TRUE(HmacKey("Jeff").Sign("text", 4) != first);
  CHECK_EQ(Hex(HmacKey("").Sign(nullptr, 0)),
           "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(comparison_sees_every_bit) {
  Random random;
  std::vector<uint8_t> a(67);
  random.Fill(a.data(), a.size());
  std::vector<uint8_t> b = a;
  CHECK_TRUE(EqualConstantTime(a.data(), b.data(), a.size()));
  CHECK_TRUE(EqualConstantTime(nullptr, nullptr, 0));
  for (size_t bit = 0; bit < a.size() * 8; ++bit) {
    b[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    CHECK_FALSE(EqualConstantTime(a.data(), b.data(), a.size()));
    b = a;
  }
}
