// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";

/// A token that anybody can mint.
contract Token is ERC20 {
    uint8 private immutable _decimals;

    constructor(uint8 decimals_) ERC20("Token", "TKN") {
        _decimals = decimals_;
    }

    function decimals() public view override returns (uint8) {
        return _decimals;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// OpenZeppelin's vault as it is, with a choice of its offset.
contract Vault is ERC4626 {
    uint8 private immutable _offset;

    constructor(IERC20 asset_, uint8 offset_) ERC20("Vault", "VLT") ERC4626(asset_) {
        _offset = offset_;
    }

    function _decimalsOffset() internal view override returns (uint8) {
        return _offset;
    }
}
