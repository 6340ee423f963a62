import { keccak_256 } from '@noble/hashes/sha3.js';
import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import * as Hex from 'ox/Hex';
import { bytesTo0xHex, bytesToHex, concatBytes, hexToBytes } from '../../crypto/encoding.ts';
import type { BatchCall } from './batch-executor.ts';
import { checksumAddress, signDigestHex } from './signer.ts';
import { hashTypedData } from './typed-data.ts';

/**
 * The smart contract to which an account delegates (EIP-7702) to execute user operations: Simple7702Account, by the
 * authors of ERC-4337, deployed at the same address on the large chains. It verifies the signature of the account's
 * own key over the operation's hash. Source: eth-infinitism/account-abstraction v0.8, Simple7702Account.sol.
 *
 * CHOICE: the specification names no account contract for sponsored gas. This one has no owner other than the
 * account's key, no state and no modules.
 */
export const SIMPLE_ACCOUNT_ADDRESS = '0xe6cae83bde06e4c305530e199d7217f42808555b';
/** Entry point 0.8. */
export const ENTRY_POINT_ADDRESS = '0x4337084d9e255ff0702461cf8895ce9e3b5ff108';
/** The version of the entry point at that address. */
export const ENTRY_POINT_VERSION = '0.8';

const execute = AbiFunction.from('function execute(address target, uint256 value, bytes data)');
const executeBatch = AbiFunction.from([
  'struct Call { address target; uint256 value; bytes data; }',
  'function executeBatch(Call[] calls)',
]);

/** Encodes call data for the account: `execute` for a single call, `executeBatch` for several, which is atomic. */
export function encodeAccountCalls(calls: readonly BatchCall[]): Uint8Array {
  const items = calls.map(({ to, value, data }) => ({
    target: to as `0x${string}`,
    value,
    data: Hex.fromBytes(data),
  }));
  const [only] = items;
  const hex =
    only !== undefined && items.length === 1
      ? AbiFunction.encodeData(execute, [only.target, only.value, only.data])
      : AbiFunction.encodeData(executeBatch, [items]);
  return hexToBytes(hex.slice(2));
}

/** A deployed factory of Light Account smart wallets, version 2. */
export interface LightAccountFactory {
  /** `0x` and 40 hex digits. */
  readonly factoryAddress: string;
  /** The implementation contract behind the factory's proxies. */
  readonly implementationAddress: string;
  /** The API's `smart_wallet_version`. */
  readonly version: string;
}

/**
 * The factory of Light Account 2.0.0, at the same address on every EVM network where it is deployed. Source:
 * https://github.com/alchemyplatform/light-account, release v2.0.0. The implementation's address is derived from the
 * factory, whose constructor creates it: rlp([factory, 1]).
 */
export const lightAccountV2: LightAccountFactory = {
  factoryAddress: '0x0000000000400CdFef5E2714E63d8040b700BC24',
  implementationAddress: '0x8E8e658E22B12ada97B402fF0b044D6A325013C7',
  version: '2.0.0',
};

// The init code of the minimal ERC-1967 proxy that the factory deploys, before and after the implementation's address.
// Source: Solady, LibClone, `createDeterministicERC1967`.
const PROXY_HEAD = hexToBytes('603d3d8160223d3973');
const PROXY_TAIL = hexToBytes(
  '60095155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc' +
    '545af43d6000803e6038573d6000fd5b3d6000f3',
);
const CREATE2_MARK = Uint8Array.of(0xff);

/**
 * Returns the counterfactual address of the owner's smart wallet. The address can receive assets before the factory
 * deploys the wallet. Source: EIP-1014; LightAccountFactory.getAddress.
 *
 * @param owner `0x` and 40 hex digits.
 * @param salt 32 bytes, all zero for an owner's first wallet.
 * @returns the EIP-55 address.
 */
export function lightAccountAddress(
  { factoryAddress, implementationAddress }: LightAccountFactory,
  owner: string,
  salt: Uint8Array = new Uint8Array(32),
): string {
  // keccak256(abi.encode(owner, salt))
  const combinedSalt = keccak_256(concatBytes(new Uint8Array(12), account(owner), salt));
  const initCodeHash = keccak_256(concatBytes(PROXY_HEAD, account(implementationAddress), PROXY_TAIL));
  // keccak256(0xff || factory || salt || keccak256(init code))[12..32]
  const address = keccak_256(concatBytes(CREATE2_MARK, account(factoryAddress), combinedSalt, initCodeHash));
  return checksumAddress(bytesToHex(address.subarray(12)));
}

function account(address: string): Uint8Array {
  return hexToBytes(address.slice(2));
}

/** The smart wallet that has to verify a signature (ERC-1271). */
export interface VerifyingAccount {
  readonly chain_id: number;
  readonly address: string;
}

/**
 * Signs a digest for a Light Account 2. Returns 0x00 (its owner is a key) || r || s || v, over
 * `LightAccountMessage(bytes message)` in the domain of the account. Source: light-account v2.0.0, ERC1271.sol and
 * LightAccount.sol.
 */
export function signForLightAccount(
  secret: Uint8Array,
  digest: Uint8Array,
  { chain_id: chainId, address }: VerifyingAccount,
): `0x${string}` {
  const hash = hashTypedData({
    domain: { name: 'LightAccount', version: '2', chainId, verifyingContract: address },
    types: { LightAccountMessage: [{ name: 'message', type: 'bytes' }] },
    primary_type: 'LightAccountMessage',
    message: { message: bytesTo0xHex(digest) },
  });
  return `0x00${signDigestHex(hash, secret).slice(2)}`;
}

const createAccount = AbiFunction.from('function createAccount(address owner, uint256 salt)');
const wrapped = AbiParameters.from('address factory, bytes factoryCalldata, bytes signature');
const WRAPPER_MAGIC = '6492'.repeat(16);

/**
 * Returns the signature of an owner's first smart wallet, for use before its factory has deployed the wallet.
 * Verifiers deploy the wallet before they call it: abi.encode(factory, call, signature) || magic. Source: ERC-6492.
 */
export function wrapForDeployment(
  { factoryAddress }: LightAccountFactory,
  owner: string,
  signature: string,
): `0x${string}` {
  const call = AbiFunction.encodeData(createAccount, [owner as `0x${string}`, 0n]);
  const parts = [factoryAddress as `0x${string}`, call, signature as `0x${string}`] as const;
  return `${AbiParameters.encode(wrapped, parts)}${WRAPPER_MAGIC}`;
}
