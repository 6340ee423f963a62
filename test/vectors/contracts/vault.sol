// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";

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

/// A vault with the functions of Aave's: part of what it holds is the fee of its owner.
contract FeeVault is Vault {
    address public immutable owner;
    uint256 public getClaimableFees;

    constructor(IERC20 asset_, address owner_) Vault(asset_, 0) {
        owner = owner_;
    }

    function totalAssets() public view override returns (uint256) {
        return super.totalAssets() - getClaimableFees;
    }

    /// Counts what somebody has sent before as fees.
    function keepFees(uint256 amount) external {
        getClaimableFees += amount;
    }

    function withdrawFees(address to, uint256 amount) external {
        require(msg.sender == owner, "Ownable: caller is not the owner");
        require(amount <= getClaimableFees, "INSUFFICIENT_FEES");
        getClaimableFees -= amount;
        require(IERC20(asset()).transfer(to, amount));
    }
}

/// Pays cumulative rewards against a Merkle root, with the functions of Merkl's. Anybody can set the root.
contract Distributor {
    struct Claim {
        uint208 amount;
        uint48 timestamp;
        bytes32 merkleRoot;
    }

    bytes32 public getMerkleRoot;
    mapping(address user => mapping(address token => Claim)) public claimed;

    error InvalidProof();
    error NotWhitelisted();

    function setRoot(bytes32 root) external {
        getMerkleRoot = root;
    }

    function claim(
        address[] calldata users,
        address[] calldata tokens,
        uint256[] calldata amounts,
        bytes32[][] calldata proofs
    ) external {
        for (uint256 i = 0; i < users.length; i++) {
            if (users[i] != msg.sender) revert NotWhitelisted();
            bytes32 leaf = keccak256(abi.encode(users[i], tokens[i], amounts[i]));
            if (!MerkleProof.verifyCalldata(proofs[i], getMerkleRoot, leaf)) revert InvalidProof();
            uint256 unclaimed = amounts[i] - claimed[users[i]][tokens[i]].amount;
            claimed[users[i]][tokens[i]] = Claim(uint208(amounts[i]), uint48(block.timestamp), getMerkleRoot);
            if (unclaimed > 0) require(IERC20(tokens[i]).transfer(users[i], unclaimed));
        }
    }
}
