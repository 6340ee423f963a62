// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Pair} from "./Pair.sol";

/// @title The factory of pairs, with the interface of Uniswap V2.
/// @dev The pairs of the sandbox's own tokens are there from the start, at the addresses that the published factory
/// gives them. New pairs are at other addresses than there, because their code is another one: ask `getPair`.
contract Factory {
    mapping(address token => mapping(address other => address)) public getPair;
    address[] public allPairs;

    event PairCreated(address indexed token0, address indexed token1, address pair, uint256 count);

    function allPairsLength() external view returns (uint256) {
        return allPairs.length;
    }

    function createPair(address tokenA, address tokenB) external returns (address pair) {
        require(tokenA != tokenB, "UniswapV2: IDENTICAL_ADDRESSES");
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        require(token0 != address(0), "UniswapV2: ZERO_ADDRESS");
        require(getPair[token0][token1] == address(0), "UniswapV2: PAIR_EXISTS");
        Pair made = new Pair{salt: keccak256(abi.encodePacked(token0, token1))}();
        made.initialize(token0, token1);
        pair = address(made);
        getPair[token0][token1] = pair;
        getPair[token1][token0] = pair;
        allPairs.push(pair);
        emit PairCreated(token0, token1, pair, allPairs.length);
    }
}
