// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Token} from "./Token.sol";

interface IFlashBorrower {
    function uniswapV2Call(address sender, uint256 amount0, uint256 amount1, bytes calldata data) external;
}

/// @title A pool of two tokens with the interface and the arithmetic of Uniswap V2: a fee of 0.3 %, none for the protocol.
/// @dev Who adds liquidity holds tokens of the pair itself. Written from the published interface.
contract Pair is Token {
    uint256 public constant MINIMUM_LIQUIDITY = 1000;

    address public factory;
    address public token0;
    address public token1;
    uint112 private _reserve0;
    uint112 private _reserve1;
    uint32 private _blockTimestampLast;
    uint256 public price0CumulativeLast;
    uint256 public price1CumulativeLast;
    uint256 private _isLocked;

    event Mint(address indexed sender, uint256 amount0, uint256 amount1);
    event Burn(address indexed sender, uint256 amount0, uint256 amount1, address indexed to);
    event Swap(
        address indexed sender,
        uint256 amount0In,
        uint256 amount1In,
        uint256 amount0Out,
        uint256 amount1Out,
        address indexed to
    );
    event Sync(uint112 reserve0, uint112 reserve1);

    modifier lock() {
        require(_isLocked == 0, "UniswapV2: LOCKED");
        _isLocked = 1;
        _;
        _isLocked = 0;
    }

    function initialize(address one, address other) external {
        require(factory == address(0), "UniswapV2: FORBIDDEN");
        factory = msg.sender;
        token0 = one;
        token1 = other;
        name = "Uniswap V2";
        symbol = "UNI-V2";
        version = "1";
        _decimals = 18;
    }

    function getReserves() public view returns (uint112 reserve0, uint112 reserve1, uint32 blockTimestampLast) {
        return (_reserve0, _reserve1, _blockTimestampLast);
    }

    function mint(address to) external lock returns (uint256 liquidity) {
        (uint112 reserve0, uint112 reserve1,) = getReserves();
        (uint256 balance0, uint256 balance1) = _balances();
        uint256 amount0 = balance0 - reserve0;
        uint256 amount1 = balance1 - reserve1;
        if (totalSupply == 0) {
            liquidity = Math.sqrt(amount0 * amount1) - MINIMUM_LIQUIDITY;
            _mint(address(0), MINIMUM_LIQUIDITY);
        } else {
            liquidity = Math.min(amount0 * totalSupply / reserve0, amount1 * totalSupply / reserve1);
        }
        require(liquidity > 0, "UniswapV2: INSUFFICIENT_LIQUIDITY_MINTED");
        _mint(to, liquidity);
        _update(balance0, balance1);
        emit Mint(msg.sender, amount0, amount1);
    }

    function burn(address to) external lock returns (uint256 amount0, uint256 amount1) {
        (uint256 balance0, uint256 balance1) = _balances();
        uint256 liquidity = balanceOf[address(this)];
        amount0 = liquidity * balance0 / totalSupply;
        amount1 = liquidity * balance1 / totalSupply;
        require(amount0 > 0 && amount1 > 0, "UniswapV2: INSUFFICIENT_LIQUIDITY_BURNED");
        _burn(address(this), liquidity);
        _pay(token0, to, amount0);
        _pay(token1, to, amount1);
        (balance0, balance1) = _balances();
        _update(balance0, balance1);
        emit Burn(msg.sender, amount0, amount1, to);
    }

    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata data) external lock {
        require(amount0Out > 0 || amount1Out > 0, "UniswapV2: INSUFFICIENT_OUTPUT_AMOUNT");
        (uint112 reserve0, uint112 reserve1,) = getReserves();
        require(amount0Out < reserve0 && amount1Out < reserve1, "UniswapV2: INSUFFICIENT_LIQUIDITY");
        require(to != token0 && to != token1, "UniswapV2: INVALID_TO");
        if (amount0Out > 0) _pay(token0, to, amount0Out);
        if (amount1Out > 0) _pay(token1, to, amount1Out);
        if (data.length > 0) IFlashBorrower(to).uniswapV2Call(msg.sender, amount0Out, amount1Out, data);
        (uint256 amount0In, uint256 amount1In) = _settle(reserve0, reserve1, amount0Out, amount1Out);
        emit Swap(msg.sender, amount0In, amount1In, amount0Out, amount1Out, to);
    }

    /// @notice Pays out what has arrived since the last trade.
    function skim(address to) external lock {
        (uint256 balance0, uint256 balance1) = _balances();
        _pay(token0, to, balance0 - _reserve0);
        _pay(token1, to, balance1 - _reserve1);
    }

    /// @notice Counts what has arrived since the last trade as liquidity.
    function sync() external lock {
        (uint256 balance0, uint256 balance1) = _balances();
        _update(balance0, balance1);
    }

    /// @dev The product of the reserves, with the fee taken off the inputs, never falls.
    function _settle(uint256 reserve0, uint256 reserve1, uint256 amount0Out, uint256 amount1Out)
        private
        returns (uint256 amount0In, uint256 amount1In)
    {
        (uint256 balance0, uint256 balance1) = _balances();
        amount0In = _arrived(balance0, reserve0 - amount0Out);
        amount1In = _arrived(balance1, reserve1 - amount1Out);
        require(amount0In > 0 || amount1In > 0, "UniswapV2: INSUFFICIENT_INPUT_AMOUNT");
        uint256 adjusted0 = balance0 * 1000 - amount0In * 3;
        uint256 adjusted1 = balance1 * 1000 - amount1In * 3;
        require(adjusted0 * adjusted1 >= reserve0 * reserve1 * 1_000_000, "UniswapV2: K");
        _update(balance0, balance1);
    }

    function _arrived(uint256 balance, uint256 expected) private pure returns (uint256) {
        return balance > expected ? balance - expected : 0;
    }

    function _balances() private view returns (uint256, uint256) {
        return (Token(token0).balanceOf(address(this)), Token(token1).balanceOf(address(this)));
    }

    function _pay(address token, address to, uint256 amount) private {
        (bool isPaid, bytes memory answer) = token.call(abi.encodeCall(Token.transfer, (to, amount)));
        require(isPaid && (answer.length == 0 || abi.decode(answer, (bool))), "UniswapV2: TRANSFER_FAILED");
    }

    function _update(uint256 balance0, uint256 balance1) private {
        require(balance0 <= type(uint112).max && balance1 <= type(uint112).max, "UniswapV2: OVERFLOW");
        uint32 now32 = uint32(block.timestamp);
        unchecked {
            // Prices are in 1 / 2^112, and both sums are meant to overflow.
            uint32 elapsed = now32 - _blockTimestampLast;
            if (elapsed > 0 && _reserve0 != 0 && _reserve1 != 0) {
                price0CumulativeLast += (uint256(_reserve1) << 112) / _reserve0 * elapsed;
                price1CumulativeLast += (uint256(_reserve0) << 112) / _reserve1 * elapsed;
            }
        }
        (_reserve0, _reserve1, _blockTimestampLast) = (uint112(balance0), uint112(balance1), now32);
        emit Sync(_reserve0, _reserve1);
    }
}
