import { contractAbi } from './contract-abi.ts';

/** An ERC-4626 vault without its ERC-20 functions. Source: ERC-4626. */
export const tokenVault = contractAbi([
  'function asset() view returns (address)',
  'function totalAssets() view returns (uint256)',
  'function convertToShares(uint256 assets) view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxMint(address receiver) view returns (uint256)',
  'function maxWithdraw(address owner) view returns (uint256)',
  'function maxRedeem(address owner) view returns (uint256)',
  'function previewDeposit(uint256 assets) view returns (uint256)',
  'function previewMint(uint256 shares) view returns (uint256)',
  'function previewWithdraw(uint256 assets) view returns (uint256)',
  'function previewRedeem(uint256 shares) view returns (uint256)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function mint(uint256 shares, address receiver) returns (uint256)',
  'function withdraw(uint256 assets, address receiver, address owner) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
]);

/** The fees that a vault on Aave keeps for its owner. Source: aave/Aave-Vault, ATokenVault. */
export const feeVault = contractAbi([
  'function getClaimableFees() view returns (uint256)',
  'function withdrawFees(address to, uint256 amount)',
]);

/** Pays cumulative rewards against a Merkle root. Source: AngleProtocol/merkl-contracts, Distributor. */
export const rewardDistributor = contractAbi([
  'function getMerkleRoot() view returns (bytes32)',
  'function claimed(address user, address token) view returns (uint208 amount, uint48 timestamp, bytes32 merkleRoot)',
  'function claim(address[] users, address[] tokens, uint256[] amounts, bytes32[][] proofs)',
]);
