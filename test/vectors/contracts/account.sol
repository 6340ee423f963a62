// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

struct PackedUserOperation {
    address sender;
    uint256 nonce;
    bytes initCode;
    bytes callData;
    bytes32 accountGasLimits;
    uint256 preVerificationGas;
    bytes32 gasFees;
    bytes paymasterAndData;
    bytes signature;
}

/// An account of ERC-4337 that one key controls.
contract OwnedAccount {
    address public immutable owner;
    address public immutable entryPoint;

    constructor(address owner_, address entryPoint_) {
        owner = owner_;
        entryPoint = entryPoint_;
    }

    receive() external payable {}

    function validateUserOp(PackedUserOperation calldata op, bytes32 hash, uint256 missing) external returns (uint256) {
        require(msg.sender == entryPoint, "not the entry point");
        (bytes32 r, bytes32 s) = abi.decode(op.signature[:64], (bytes32, bytes32));
        if (missing > 0) {
            (bool sent,) = msg.sender.call{value: missing}("");
            sent;
        }
        return ecrecover(hash, uint8(op.signature[64]), r, s) == owner ? 0 : 1;
    }

    function execute(address target, uint256 value, bytes calldata data) external {
        require(msg.sender == entryPoint, "not the entry point");
        (bool done, bytes memory returned) = target.call{value: value}(data);
        if (!done) {
            assembly {
                revert(add(returned, 32), mload(returned))
            }
        }
    }
}

contract AccountFactory {
    function create(address owner, address entryPoint) external returns (address) {
        return address(new OwnedAccount{salt: 0}(owner, entryPoint));
    }
}

/// Pays for the operations of everyone, from its deposit.
contract OpenPaymaster {
    event Paid(uint256 cost);

    function validatePaymasterUserOp(PackedUserOperation calldata, bytes32, uint256)
        external
        pure
        returns (bytes memory context, uint256 validationData)
    {
        return (hex"01", 0);
    }

    function postOp(uint8, bytes calldata, uint256 cost, uint256) external {
        emit Paid(cost);
    }
}
