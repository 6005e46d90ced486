#include "links/interface_bytes.h"

#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace mercury {
namespace {

// 0: none has this address.
unsigned IndexOf(const sockaddr* address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return 0;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr && SameHost(one->ifa_addr, address)) {
      return if_nametoindex(one->ifa_name);
    }
  }
  return 0;
}

}  // namespace

InterfaceBytes::InterfaceBytes(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return;
  kernel_ = TcpSocket(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!kernel_) return;
  index_ = IndexOf(reinterpret_cast<const sockaddr*>(&address));
  if (Read().received == 0) index_ = 0;  // an old kernel, or one that does not say
}

InterfaceBytes::Totals InterfaceBytes::Read() {
  if (index_ == 0) return {};
  struct {
    nlmsghdr header;
    if_stats_msg message;
  } question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = RTM_GETSTATS;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.message.ifindex = index_;
  question.message.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  if (send(kernel_.fd(), &question, sizeof(question), 0) != sizeof(question)) return {};
  // The kernel answers before `send` returns.
  alignas(nlmsghdr) char answer[1024];
  const ssize_t got = recv(kernel_.fd(), answer, sizeof(answer), 0);
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN)) return {};
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  constexpr size_t kBefore = NLMSG_LENGTH(sizeof(if_stats_msg));
  if (header->nlmsg_type != RTM_NEWSTATS || header->nlmsg_len > static_cast<size_t>(got)) return {};
  if (header->nlmsg_len < kBefore + RTA_LENGTH(sizeof(rtnl_link_stats64))) return {};
  const auto* attribute = reinterpret_cast<const rtattr*>(answer + kBefore);
  if (attribute->rta_type != IFLA_STATS_LINK_64) return {};
  rtnl_link_stats64 stats{};
  std::memcpy(&stats, RTA_DATA(attribute), sizeof(stats));
  return {stats.rx_bytes, stats.tx_bytes};
}

}  // namespace mercury
