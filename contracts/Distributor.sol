// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {Token} from "./Token.sol";

/// @title Pays cumulative rewards against a Merkle root, with the interface of Merkl's Distributor.
/// @dev The sandbox writes the root. Operators, who claim for others, do not exist.
contract Distributor {
    struct Claim {
        uint208 amount;
        uint48 timestamp;
        bytes32 merkleRoot;
    }

    bytes32 private _root;
    /// @notice What an account has claimed of a token.
    mapping(address user => mapping(address token => Claim)) public claimed;

    event Claimed(address indexed user, address indexed token, uint256 amount);

    error InvalidLengths();
    error InvalidProof();
    error NotWhitelisted();

    function getMerkleRoot() public view returns (bytes32) {
        return _root;
    }

    function claim(
        address[] calldata users,
        address[] calldata tokens,
        uint256[] calldata amounts,
        bytes32[][] calldata proofs
    ) external {
        bool isEven = tokens.length == users.length && amounts.length == users.length && proofs.length == users.length;
        if (users.length == 0 || !isEven) revert InvalidLengths();
        for (uint256 index = 0; index < users.length; index++) {
            if (users[index] != msg.sender) revert NotWhitelisted();
            _claim(users[index], tokens[index], amounts[index], proofs[index]);
        }
    }

    function _claim(address user, address token, uint256 amount, bytes32[] calldata proof) private {
        bytes32 leaf = keccak256(abi.encode(user, token, amount));
        if (_root == 0 || MerkleProof.processProofCalldata(proof, leaf) != _root) revert InvalidProof();
        uint256 due = amount - claimed[user][token].amount;
        claimed[user][token] = Claim(uint208(amount), uint48(block.timestamp), _root);
        if (due == 0) return;
        require(Token(token).transfer(user, due));
        emit Claimed(user, token, due);
    }
}
