import type { ActionUnit, PolicyAction } from './action.ts';

const EXPORTS: ReadonlySet<string> = new Set(['exportPrivateKey', 'exportSeedPhrase']);
const HASH_BYTES = 32;
/** The primary type of a user operation since entry point 0.8. Source: ERC-4337. */
const USER_OPERATION_TYPE = 'PackedUserOperation';
/**
 * The typed data that signs a transaction of type 113 on ZKsync chains. Source: era-contracts, TransactionHelper.sol.
 */
const ZKSYNC_TRANSACTION = { domainName: 'zkSync', primaryType: 'Transaction' };
/**
 * The typed data in which smart accounts wrap another message to verify it (ERC-1271), with the name and type of the
 * only member, the hash of that message. Source: ERC1271.sol of Light Account and of Coinbase Smart Wallet,
 * CompatibilityFallbackHandler.sol of Safe, Constants.sol of Kernel, ModuleBase.sol of Modular Account.
 */
export const smartAccountTypes: Readonly<Record<string, { readonly name: string; readonly type: string }>> = {
  LightAccountMessage: { name: 'message', type: 'bytes' },
  SafeMessage: { name: 'message', type: 'bytes' },
  CoinbaseSmartWalletMessage: { name: 'hash', type: 'bytes32' },
  Kernel: { name: 'hash', type: 'bytes32' },
  ReplaySafeHash: { name: 'hash', type: 'bytes32' },
};

/**
 * Converts an action into the form that apps with `strict_methods` evaluate. Returns the same object if the setting
 * makes no difference.
 *
 * Methods overlap: several of them can produce the same signature, and an exported key can produce all signatures.
 * With strict methods:
 * - ALLOW rules for `*` do not apply to exports, nor to content that cannot be decoded, such as a hash.
 * - Messages and typed data count as undecodable if they may be a user operation or a transaction, or contain only
 * the hash that a smart account verifies.
 * - DENY rules for `*` always apply.
 */
export function strictly(action: PolicyAction): PolicyAction {
  const units = action.units.map(withoutDisguise);
  const isNamedOnly =
    EXPORTS.has(action.method) || units.some(({ undecodable }) => undecodable !== undefined);
  return isNamedOnly ? { ...action, units, isNamedOnly } : action;
}

function withoutDisguise(unit: ActionUnit): ActionUnit {
  const { label, messageBytes, typedData } = unit;
  // Accounts of the entry points 0.6 and 0.7 verify the hash of a user operation as a personal message.
  if (messageBytes?.length === HASH_BYTES) {
    return { label, undecodable: 'a message of 32 bytes may be the hash of a user operation' };
  }
  if (typedData?.primaryType === USER_OPERATION_TYPE) {
    return { label, undecodable: 'typed data of this type is a user operation' };
  }
  if (
    typedData?.primaryType === ZKSYNC_TRANSACTION.primaryType &&
    typedData.domain.name === ZKSYNC_TRANSACTION.domainName
  ) {
    return { label, undecodable: 'typed data of this type is a transaction of ZKsync' };
  }
  if (typedData !== undefined && Object.hasOwn(smartAccountTypes, typedData.primaryType)) {
    return { label, undecodable: 'typed data of this type is the hash of what a smart account signs' };
  }
  return unit;
}
