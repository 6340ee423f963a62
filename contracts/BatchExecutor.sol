// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Runs batches of an account that delegates to it (ERC-7821, EIP-7702), for the account itself only.
contract BatchExecutor {
    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    /// @dev ERC-7579: a batch of calls, all or nothing, without payload.
    bytes32 private constant BATCH = bytes32(uint256(1) << 248);

    receive() external payable {}

    function supportsExecutionMode(bytes32 mode) external pure returns (bool) {
        return mode == BATCH;
    }

    /// @notice Runs the calls in order. A call to address 0 is a call to the account.
    function execute(bytes32 mode, bytes calldata executionData) external payable {
        require(mode == BATCH, "unsupported execution mode");
        require(msg.sender == address(this), "unauthorized");
        Call[] memory calls = abi.decode(executionData, (Call[]));
        for (uint256 index = 0; index < calls.length; index++) {
            Call memory next = calls[index];
            address to = next.to == address(0) ? address(this) : next.to;
            (bool isDone, bytes memory answer) = to.call{value: next.value}(next.data);
            if (isDone) continue;
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    function onERC721Received(address, address, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC721Received.selector;
    }

    function onERC1155Received(address, address, uint256, uint256, bytes calldata) external pure returns (bytes4) {
        return this.onERC1155Received.selector;
    }

    function onERC1155BatchReceived(address, address, uint256[] calldata, uint256[] calldata, bytes calldata)
        external
        pure
        returns (bytes4)
    {
        return this.onERC1155BatchReceived.selector;
    }
}
