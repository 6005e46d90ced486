#include "trace/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trace/trace_text.h"

namespace mercury {

TraceFile::~TraceFile() {
  if (fd_ >= 0) close(fd_);
}

Status TraceFile::Open(const std::string& directory, const TraceIdentity& identity,
                       bool scheduler_traffic, bool binary) {
  binary_ = binary;
  path_ = directory + "/" + TraceFileName(identity, scheduler_traffic) + (binary ? ".dlc" : ".txt");
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    return Status::InvalidArgument("cannot make " + path_ + ": " + std::strerror(errno));
  }
  buffer_ = binary_ ? TraceHeaderPiece(identity) : TraceHeaderText(identity);
  return Flush();
}

void TraceFile::EndBlock() {
  if (pending_.empty()) return;
  buffer_ += blocks_.Encode(records_ - static_cast<int64_t>(pending_.size()), pending_);
  pending_.clear();
}

void TraceFile::Add(TraceRecord record) {
  if (!binary_) return AppendTraceRecord(records_++, record, &buffer_);
  ++records_;
  pending_.push_back(std::move(record));
  if (pending_.size() >= kTraceBlockRecords) EndBlock();
}

void TraceFile::Note(const std::string& note) {
  if (!binary_) return AppendTraceNote(note, &buffer_);
  EndBlock();
  buffer_ += TraceNotePiece(note);
}

Status TraceFile::Flush() {
  EndBlock();
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote = write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
    } else if (wrote == 0 || errno != EINTR) {
      const std::string why = wrote == 0 ? "nothing was taken" : std::strerror(errno);
      // What was written of this is no whole line, perhaps.
      [[maybe_unused]] const int cut = ftruncate(fd_, bytes_);
      return Status::Exhausted("cannot write to " + path_ + ": " + why);
    }
  }
  bytes_ += static_cast<int64_t>(done);
  buffer_.clear();
  return Status::Ok();
}

Status TraceFile::End() {
  if (fd_ < 0) return Status::Ok();
  Note(TraceEndNote(records_));
  const Status status = Flush();
  close(std::exchange(fd_, -1));
  return status;
}

}  // namespace mercury
