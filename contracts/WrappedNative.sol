// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Token} from "./Token.sol";

/// @title The token that stands for the native asset, with the interface of WETH9.
/// @dev Unlike WETH9, it also emits Transfer when it mints and burns, as the wrapped assets of rollups do.
contract WrappedNative is Token {
    event Deposit(address indexed dst, uint256 wad);
    event Withdrawal(address indexed src, uint256 wad);

    receive() external payable {
        deposit();
    }

    fallback() external payable {
        deposit();
    }

    function deposit() public payable {
        if (msg.value == 0) return;
        _mint(msg.sender, msg.value);
        emit Deposit(msg.sender, msg.value);
    }

    /// @dev WETH9 reverts without a reason.
    function withdraw(uint256 wad) external {
        require(balanceOf[msg.sender] >= wad);
        _burn(msg.sender, wad);
        (bool isPaid,) = msg.sender.call{value: wad}("");
        require(isPaid);
        emit Withdrawal(msg.sender, wad);
    }
}
