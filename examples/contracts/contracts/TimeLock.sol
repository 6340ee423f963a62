// SPDX-License-Identifier: MIT
pragma solidity ^0.8.17;

/// Keeps ether until a time, and then pays it to its owner.
contract TimeLock {
  address payable public immutable owner;
  uint256 public immutable unlockTime;

  event Withdrawal(uint256 amount);

  error TooEarly(uint256 unlockTime);

  constructor(uint256 time) payable {
    owner = payable(msg.sender);
    unlockTime = time;
  }

  function withdraw() external {
    require(msg.sender == owner, "not the owner");
    if (block.timestamp < unlockTime) revert TooEarly(unlockTime);
    emit Withdrawal(address(this).balance);
    owner.transfer(address(this).balance);
  }
}
