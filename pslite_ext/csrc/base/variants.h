// Variants: a function for each alternative, and an alternative by its number.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

namespace mercury {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// What the function for the alternative that `one` is returns; one function may be for several.
template <typename V, typename... Fs>
auto Match(const V& one, Fs... each) {
  return std::visit(Overloaded{std::move(each)...}, one);
}

// Makes `one` its alternative number `index`, with nothing filled in; false: there is none.
template <typename... Ts>
bool BecomeAt(size_t index, std::variant<Ts...>* one) {
  size_t at = 0;
  return ((at++ == index && (one->template emplace<Ts>(), true)) || ...);
}

}  // namespace mercury
