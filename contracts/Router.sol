// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Factory} from "./Factory.sol";
import {Pair} from "./Pair.sol";
import {Token} from "./Token.sol";
import {WrappedNative} from "./WrappedNative.sol";

/// @title A router for swaps and liquidity, with the interface of Uniswap's UniswapV2Router02.
/// @dev Written from the published interface. Functions for tokens that take a fee of each transfer are left out.
contract Router {
    address public factory;
    /// @notice The token that stands for the native asset.
    address public WETH;

    modifier ensure(uint256 deadline) {
        require(deadline >= block.timestamp, "UniswapV2Router: EXPIRED");
        _;
    }

    receive() external payable {
        require(msg.sender == WETH);
    }

    // Swaps

    function swapExactTokensForTokens(
        uint256 amountIn,
        uint256 amountOutMin,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external ensure(deadline) returns (uint256[] memory amounts) {
        amounts = getAmountsOut(amountIn, path);
        _requireOutput(amounts, amountOutMin);
        _take(path[0], msg.sender, _pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, to);
    }

    function swapTokensForExactTokens(
        uint256 amountOut,
        uint256 amountInMax,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external ensure(deadline) returns (uint256[] memory amounts) {
        amounts = getAmountsIn(amountOut, path);
        require(amounts[0] <= amountInMax, "UniswapV2Router: EXCESSIVE_INPUT_AMOUNT");
        _take(path[0], msg.sender, _pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, to);
    }

    function swapExactETHForTokens(uint256 amountOutMin, address[] calldata path, address to, uint256 deadline)
        external
        payable
        ensure(deadline)
        returns (uint256[] memory amounts)
    {
        require(path[0] == WETH, "UniswapV2Router: INVALID_PATH");
        amounts = getAmountsOut(msg.value, path);
        _requireOutput(amounts, amountOutMin);
        _wrap(_pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, to);
    }

    function swapTokensForExactETH(
        uint256 amountOut,
        uint256 amountInMax,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external ensure(deadline) returns (uint256[] memory amounts) {
        require(path[path.length - 1] == WETH, "UniswapV2Router: INVALID_PATH");
        amounts = getAmountsIn(amountOut, path);
        require(amounts[0] <= amountInMax, "UniswapV2Router: EXCESSIVE_INPUT_AMOUNT");
        _take(path[0], msg.sender, _pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, address(this));
        _unwrap(to, amounts[amounts.length - 1]);
    }

    function swapExactTokensForETH(
        uint256 amountIn,
        uint256 amountOutMin,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external ensure(deadline) returns (uint256[] memory amounts) {
        require(path[path.length - 1] == WETH, "UniswapV2Router: INVALID_PATH");
        amounts = getAmountsOut(amountIn, path);
        _requireOutput(amounts, amountOutMin);
        _take(path[0], msg.sender, _pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, address(this));
        _unwrap(to, amounts[amounts.length - 1]);
    }

    function swapETHForExactTokens(uint256 amountOut, address[] calldata path, address to, uint256 deadline)
        external
        payable
        ensure(deadline)
        returns (uint256[] memory amounts)
    {
        require(path[0] == WETH, "UniswapV2Router: INVALID_PATH");
        amounts = getAmountsIn(amountOut, path);
        require(amounts[0] <= msg.value, "UniswapV2Router: EXCESSIVE_INPUT_AMOUNT");
        _wrap(_pairOf(path[0], path[1]), amounts[0]);
        _swap(amounts, path, to);
        if (msg.value > amounts[0]) _payNative(msg.sender, msg.value - amounts[0]);
    }

    // Liquidity

    function addLiquidity(
        address tokenA,
        address tokenB,
        uint256 amountADesired,
        uint256 amountBDesired,
        uint256 amountAMin,
        uint256 amountBMin,
        address to,
        uint256 deadline
    ) external ensure(deadline) returns (uint256 amountA, uint256 amountB, uint256 liquidity) {
        (amountA, amountB) = _share(tokenA, tokenB, amountADesired, amountBDesired, amountAMin, amountBMin);
        address pair = _pairOf(tokenA, tokenB);
        _take(tokenA, msg.sender, pair, amountA);
        _take(tokenB, msg.sender, pair, amountB);
        liquidity = Pair(pair).mint(to);
    }

    function addLiquidityETH(
        address token,
        uint256 amountTokenDesired,
        uint256 amountTokenMin,
        uint256 amountETHMin,
        address to,
        uint256 deadline
    ) external payable ensure(deadline) returns (uint256 amountToken, uint256 amountETH, uint256 liquidity) {
        (amountToken, amountETH) =
            _share(token, WETH, amountTokenDesired, msg.value, amountTokenMin, amountETHMin);
        address pair = _pairOf(token, WETH);
        _take(token, msg.sender, pair, amountToken);
        _wrap(pair, amountETH);
        liquidity = Pair(pair).mint(to);
        if (msg.value > amountETH) _payNative(msg.sender, msg.value - amountETH);
    }

    function removeLiquidity(
        address tokenA,
        address tokenB,
        uint256 liquidity,
        uint256 amountAMin,
        uint256 amountBMin,
        address to,
        uint256 deadline
    ) public ensure(deadline) returns (uint256 amountA, uint256 amountB) {
        address pair = _pairOf(tokenA, tokenB);
        _take(pair, msg.sender, pair, liquidity);
        (uint256 amount0, uint256 amount1) = Pair(pair).burn(to);
        (amountA, amountB) = tokenA < tokenB ? (amount0, amount1) : (amount1, amount0);
        require(amountA >= amountAMin, "UniswapV2Router: INSUFFICIENT_A_AMOUNT");
        require(amountB >= amountBMin, "UniswapV2Router: INSUFFICIENT_B_AMOUNT");
    }

    function removeLiquidityETH(
        address token,
        uint256 liquidity,
        uint256 amountTokenMin,
        uint256 amountETHMin,
        address to,
        uint256 deadline
    ) external returns (uint256 amountToken, uint256 amountETH) {
        (amountToken, amountETH) =
            removeLiquidity(token, WETH, liquidity, amountTokenMin, amountETHMin, address(this), deadline);
        _send(token, to, amountToken);
        _unwrap(to, amountETH);
    }

    // Arithmetic

    function quote(uint256 amountA, uint256 reserveA, uint256 reserveB) public pure returns (uint256) {
        require(amountA > 0, "UniswapV2Library: INSUFFICIENT_AMOUNT");
        require(reserveA > 0 && reserveB > 0, "UniswapV2Library: INSUFFICIENT_LIQUIDITY");
        return _times(amountA, reserveB) / reserveA;
    }

    function getAmountOut(uint256 amountIn, uint256 reserveIn, uint256 reserveOut) public pure returns (uint256) {
        require(amountIn > 0, "UniswapV2Library: INSUFFICIENT_INPUT_AMOUNT");
        require(reserveIn > 0 && reserveOut > 0, "UniswapV2Library: INSUFFICIENT_LIQUIDITY");
        uint256 inputWithFee = _times(amountIn, 997);
        return _times(inputWithFee, reserveOut) / _plus(_times(reserveIn, 1000), inputWithFee);
    }

    function getAmountIn(uint256 amountOut, uint256 reserveIn, uint256 reserveOut) public pure returns (uint256) {
        require(amountOut > 0, "UniswapV2Library: INSUFFICIENT_OUTPUT_AMOUNT");
        require(reserveIn > 0 && reserveOut > 0, "UniswapV2Library: INSUFFICIENT_LIQUIDITY");
        uint256 numerator = _times(_times(reserveIn, amountOut), 1000);
        require(amountOut <= reserveOut, "ds-math-sub-underflow");
        // The published library divides by zero here and reverts without a reason.
        require(amountOut < reserveOut);
        return numerator / ((reserveOut - amountOut) * 997) + 1;
    }

    function getAmountsOut(uint256 amountIn, address[] calldata path) public view returns (uint256[] memory amounts) {
        require(path.length >= 2, "UniswapV2Library: INVALID_PATH");
        amounts = new uint256[](path.length);
        amounts[0] = amountIn;
        for (uint256 hop = 0; hop < path.length - 1; hop++) {
            (uint256 reserveIn, uint256 reserveOut) = _reservesOf(path[hop], path[hop + 1]);
            amounts[hop + 1] = getAmountOut(amounts[hop], reserveIn, reserveOut);
        }
    }

    function getAmountsIn(uint256 amountOut, address[] calldata path) public view returns (uint256[] memory amounts) {
        require(path.length >= 2, "UniswapV2Library: INVALID_PATH");
        amounts = new uint256[](path.length);
        amounts[path.length - 1] = amountOut;
        for (uint256 hop = path.length - 1; hop > 0; hop--) {
            (uint256 reserveIn, uint256 reserveOut) = _reservesOf(path[hop - 1], path[hop]);
            amounts[hop - 1] = getAmountIn(amounts[hop], reserveIn, reserveOut);
        }
    }

    function _swap(uint256[] memory amounts, address[] calldata path, address to) private {
        for (uint256 hop = 0; hop < path.length - 1; hop++) {
            (address tokenIn, address tokenOut) = (path[hop], path[hop + 1]);
            address recipient = hop + 2 < path.length ? _pairOf(tokenOut, path[hop + 2]) : to;
            (uint256 amount0, uint256 amount1) =
                tokenIn < tokenOut ? (uint256(0), amounts[hop + 1]) : (amounts[hop + 1], uint256(0));
            Pair(_pairOf(tokenIn, tokenOut)).swap(amount0, amount1, recipient, "");
        }
    }

    function _share(
        address tokenA,
        address tokenB,
        uint256 desiredA,
        uint256 desiredB,
        uint256 minA,
        uint256 minB
    ) private returns (uint256, uint256) {
        if (Factory(factory).getPair(tokenA, tokenB) == address(0)) Factory(factory).createPair(tokenA, tokenB);
        (uint256 reserveA, uint256 reserveB) = _reservesOf(tokenA, tokenB);
        if (reserveA == 0 && reserveB == 0) return (desiredA, desiredB);
        uint256 optimalB = quote(desiredA, reserveA, reserveB);
        if (optimalB <= desiredB) {
            require(optimalB >= minB, "UniswapV2Router: INSUFFICIENT_B_AMOUNT");
            return (desiredA, optimalB);
        }
        uint256 optimalA = quote(desiredB, reserveB, reserveA);
        require(optimalA >= minA, "UniswapV2Router: INSUFFICIENT_A_AMOUNT");
        return (optimalA, desiredB);
    }

    function _reservesOf(address tokenIn, address tokenOut) private view returns (uint256, uint256) {
        (uint112 reserve0, uint112 reserve1,) = Pair(_pairOf(tokenIn, tokenOut)).getReserves();
        return tokenIn < tokenOut ? (reserve0, reserve1) : (reserve1, reserve0);
    }

    /// @dev The published router calls an address without code here, which reverts without a reason.
    function _pairOf(address one, address other) private view returns (address pair) {
        require(one != other, "UniswapV2Library: IDENTICAL_ADDRESSES");
        require(one != address(0) && other != address(0), "UniswapV2Library: ZERO_ADDRESS");
        pair = Factory(factory).getPair(one, other);
        require(pair != address(0));
    }

    function _requireOutput(uint256[] memory amounts, uint256 least) private pure {
        require(amounts[amounts.length - 1] >= least, "UniswapV2Router: INSUFFICIENT_OUTPUT_AMOUNT");
    }

    function _wrap(address to, uint256 amount) private {
        WrappedNative(payable(WETH)).deposit{value: amount}();
        _send(WETH, to, amount);
    }

    function _unwrap(address to, uint256 amount) private {
        WrappedNative(payable(WETH)).withdraw(amount);
        _payNative(to, amount);
    }

    function _payNative(address to, uint256 amount) private {
        (bool isPaid,) = to.call{value: amount}("");
        require(isPaid, "TransferHelper: ETH_TRANSFER_FAILED");
    }

    function _take(address token, address from, address to, uint256 amount) private {
        (bool isPaid, bytes memory answer) = token.call(abi.encodeCall(Token.transferFrom, (from, to, amount)));
        require(
            isPaid && (answer.length == 0 || abi.decode(answer, (bool))), "TransferHelper: TRANSFER_FROM_FAILED"
        );
    }

    function _send(address token, address to, uint256 amount) private {
        (bool isPaid, bytes memory answer) = token.call(abi.encodeCall(Token.transfer, (to, amount)));
        require(isPaid && (answer.length == 0 || abi.decode(answer, (bool))), "TransferHelper: TRANSFER_FAILED");
    }

    function _times(uint256 one, uint256 other) private pure returns (uint256 product) {
        unchecked {
            product = one * other;
            require(other == 0 || product / other == one, "ds-math-mul-overflow");
        }
    }

    function _plus(uint256 one, uint256 other) private pure returns (uint256 sum) {
        unchecked {
            sum = one + other;
            require(sum >= one, "ds-math-add-overflow");
        }
    }
}
