import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';
import { loadOnce } from '../../../../../engine/load-once.ts';
import { recoverDigestSigner } from '../../../../../engine/signing/ethereum/any-transaction.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../../engine/signing/ethereum/smart-accounts.ts';
import {
  decodeSponsoredOperation,
  hashSponsoredOperation,
  hashUserOperation,
  type SponsoredOperation,
} from '../../../../../engine/signing/ethereum/user-operation.ts';
import { decodeAccountCalls } from '../../../../../engine/signing/ethereum/user-operation-calls.ts';
import { InvalidTransactionError } from '../../../../../engine/signing/signing-errors.ts';
import type { BroadcastOutcome, Bundler, ChainStatus } from '../../../../../ports/chains.ts';
import { decodeOrRefuse, refuse } from '../../decode-or-refuse.ts';
import type { PoolEntry } from '../../pool.ts';
import { PAYMASTER_ADDRESS } from '../../sponsors.ts';
import { fundEvm } from '../faucet.ts';
import { canAfford } from '../gas-payment.ts';
import { BLOCK_GAS_LIMIT, OPERATION_LANE } from '../machine.ts';
import { makeOverlay } from '../overlay.ts';
import type { EvmParts } from '../parts.ts';
import { type EvmPlan, gasBefore, planAuthorizations, sentinelAmong } from '../plan.ts';
import { findReceipt } from '../receipts.ts';
import { findOperation, isOfContract } from './events.ts';

/** CHOICE: the amount with which the paymaster is refilled, 10 units of the native asset. */
const REFILL = 10n ** 19n;
/** CHOICE: the gas that the entry point itself uses per operation. */
const ENTRY_POINT_GAS = 60_000n;

interface Decoded {
  readonly hash: string;
  /** The hash of a transaction that contains only this operation. */
  readonly bundleHash: string;
  readonly nonceKey: string;
  readonly sequence: bigint;
  readonly plan: EvmPlan;
}

export function simulateBundler(parts: EvmParts): Bundler {
  const { pool, blocks, state, atHead } = parts;
  return {
    paymaster: PAYMASTER_ADDRESS,
    async broadcast(bytes) {
      const known = await decodeOrRefuse(() => decodeSponsoredOperation(bytes));
      if ('isAccepted' in known) return known;
      if (isOfContract(parts, known)) {
        const { acceptContractOperation } = await contractAccounts();
        const hashed = await decodeOrRefuse(() => ({ bundleHash: bundleHashOf(parts, known) }));
        if ('isAccepted' in hashed) return hashed;
        await blocks.catchUp();
        const place = { operation: known, ...hashed };
        const outcome = await acceptContractOperation(parts, () => makeOverlay(state), place);
        await blocks.catchUp();
        return outcome;
      }
      const decoded = await decodeOrRefuse(() => decode(bytes, Number(state.chainId)));
      if ('isAccepted' in decoded) return decoded;
      const outcome = await atHead(() => acceptOperation(parts, decoded));
      await blocks.catchUp();
      return outcome;
    },
    async statusOf(_hash, bytes) {
      const known = decodeSponsoredOperation(bytes);
      const entry = pool.find(bundleHashOf(parts, known));
      if (entry !== undefined && !entry.lane.startsWith(OPERATION_LANE)) {
        return atHead(() => statusOfBundle(parts, entry));
      }
      const { plan, bundleHash } = decode(bytes, Number(state.chainId));
      // CHOICE: for a recipient that triggers a provider error, the bundler accepts the operation and then loses it.
      if (plan.sentinel === 'provider_error') return { kind: 'unknown', isExpired: true };
      return atHead(() => {
        const status = pool.status(bundleHash, blocks) ?? { kind: 'unknown', isExpired: false };
        return withBundleTransaction(status, bundleHash, priceOf(parts, plan));
      });
    },
  };
}

// Loaded on demand, because most sandboxes have no accounts that are smart contracts.
const contractAccounts = loadOnce(() => import('./contract-accounts.ts'));

function bundleHashOf({ state }: EvmParts, operation: SponsoredOperation): string {
  return bundleOf(hashSponsoredOperation(operation, state.chainId));
}

/** Returns the status of an operation that has a transaction of its own. */
function statusOfBundle({ pool, blocks, state }: EvmParts, { hash, plan }: PoolEntry<EvmPlan>): ChainStatus {
  const status = pool.status(hash, blocks) ?? { kind: 'unknown', isExpired: false };
  const receipt = findReceipt(state, hash);
  const operation = decodeSponsoredOperation(hexToBytes(plan.operation!.slice(2)));
  const found = receipt && findOperation(receipt.logs, hashSponsoredOperation(operation, state.chainId));
  if (found === undefined || status.kind !== 'included') return status;
  const included = {
    ...{ ...status, feePaid: found.gasCost },
    operation: { transactionHash: hash, gasUsed: found.gasUsed, logIndex: found.logs[1] - 1 },
  };
  if (found.succeeds) return included;
  return { ...included, kind: 'reverted', reason: 'execution reverted' };
}

function withBundleTransaction(status: ChainStatus, transactionHash: string, price: bigint): ChainStatus {
  if (status.kind !== 'included' && status.kind !== 'reverted') return status;
  return { ...status, operation: { transactionHash, gasUsed: status.feePaid / price, logIndex: 0 } };
}

// effective price = min(fee cap, base fee + tip)
function priceOf({ state }: EvmParts, { maxFeePerGas, maxPriorityFeePerGas }: EvmPlan): bigint {
  const offered = state.baseFee + maxPriorityFeePerGas;
  return offered < maxFeePerGas ? offered : maxFeePerGas;
}

/**
 * Decodes a signed operation into its execution plan.
 *
 * @throws InvalidTransactionError
 */
function decode(bytes: Uint8Array, chainId: number): Decoded {
  const { user_operation: operation, authorization } = decodeSponsoredOperation(bytes);
  const params = { contract: ENTRY_POINT_ADDRESS, chain_id: chainId, user_operation: operation };
  const { hash } = hashUserOperation(params);
  const sender = operation.sender.toLowerCase();
  if (recoverDigestSigner(hash, operation.signature) !== sender) {
    throw new InvalidTransactionError('', 'AA24 signature error');
  }
  const calls = decodeAccountCalls(hexToBytes(operation.call_data.slice(2)))?.map((call) => ({
    to: call.to,
    value: call.value,
    data: bytesTo0xHex(call.data),
  }));
  if (calls === undefined) throw new InvalidTransactionError('', 'AA23 reverted: no call of the account');
  const authorizations = authorization === undefined ? [] : [authorizationOf(authorization)];
  const nonce = BigInt(operation.nonce);
  return {
    hash: bytesTo0xHex(hash),
    bundleHash: bundleOf(bytesTo0xHex(hash)),
    nonceKey: (nonce >> 64n).toString(16),
    sequence: nonce & 0xffff_ffff_ffff_ffffn,
    plan: {
      raw: null,
      operation: bytesTo0xHex(bytes),
      sender,
      feePayer: operation.paymaster?.toLowerCase() ?? sender,
      feeToken: null,
      calls,
      authorizations: planAuthorizations(authorizations),
      accessList: [],
      ...gasOf(operation, gasBefore(calls, { accessList: [], authorizations })),
      maxFeePerGas: BigInt(operation.max_fee_per_gas),
      maxPriorityFeePerGas: BigInt(operation.max_priority_fee_per_gas),
      validAfter: 0,
      validBefore: null,
      sentinel: sentinelAmong(calls) ?? null,
    },
  };
}

/** Returns the hash of a transaction that contains only this operation. */
export function bundleOf(operationHash: string): string {
  return bytesTo0xHex(keccak_256(utf8ToBytes(`bundle of ${operationHash}`)));
}

type Operation = ReturnType<typeof decodeSponsoredOperation>['user_operation'];

function gasOf(operation: Operation, before: ReturnType<typeof gasBefore>) {
  const limits = [
    operation.call_gas_limit,
    operation.verification_gas_limit,
    operation.pre_verification_gas,
    operation.paymaster_verification_gas_limit ?? '0x0',
    operation.paymaster_post_op_gas_limit ?? '0x0',
  ];
  return {
    gasLimit: limits.reduce((sum, limit) => sum + BigInt(limit), 0n),
    intrinsicGas: before.intrinsicGas + ENTRY_POINT_GAS,
    floorGas: before.floorGas,
  };
}

type Authorization = NonNullable<ReturnType<typeof decodeSponsoredOperation>['authorization']>;

function authorizationOf({ contract, chain_id: chainId, nonce, r, s, y_parity: parity }: Authorization) {
  const signature = `${r}${s.slice(2)}0${parity}` as const;
  return { contract, chainId: Number(chainId), nonce: BigInt(nonce), signature };
}

function acceptOperation(
  parts: EvmParts,
  { hash, bundleHash, nonceKey, sequence, plan }: Decoded,
): BroadcastOutcome {
  const { world, state, pool, blocks } = parts;
  if (pool.isKnown(bundleHash) || plan.sentinel === 'provider_error') return { isAccepted: true, hash };
  const lane = `${OPERATION_LANE}${nonceKey}`;
  const paysItself = plan.feePayer === plan.sender;
  if (!paysItself && plan.feePayer !== PAYMASTER_ADDRESS) {
    return refuse('invalid', 'AA30 paymaster not deployed');
  }
  if (!isOrWillBeAccount(parts, plan)) return refuse('invalid', 'AA20 account not deployed');
  if (sequence !== BigInt(state.accounts.nonce(plan.sender, lane))) {
    return refuse('stale', 'AA25 invalid account nonce');
  }
  if (plan.gasLimit > BLOCK_GAS_LIMIT || plan.gasLimit < plan.intrinsicGas) {
    return refuse('invalid', `AA95 out of gas: have ${plan.gasLimit}, want ${plan.intrinsicGas}`);
  }
  if (priceOf(parts, plan) < state.baseFee) return refuse('underpriced', 'max fee below the base fee');
  while (!paysItself && !canPaymasterPay(parts, plan)) {
    fundEvm(parts, { address: PAYMASTER_ADDRESS, tokenAddress: null, rawAmount: REFILL });
  }
  if (!canAfford(state, [plan])) {
    const message = paysItself ? "AA21 didn't pay prefund" : 'insufficient funds for the calls';
    return refuse('insufficient_funds', message);
  }
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  pool.add({ hash: bundleHash, sender: plan.sender, lane, nonce: Number(sequence), plan, ...times });
  return { isAccepted: true, hash };
}

/** Returns whether the paymaster can pay for this operation and all pending ones. */
function canPaymasterPay({ state, pool }: EvmParts, plan: EvmPlan): boolean {
  const pending = pool.due(Number.MAX_SAFE_INTEGER).map((entry) => entry.plan);
  const sponsored = [...pending.filter(({ feePayer }) => feePayer === PAYMASTER_ADDRESS), plan];
  return canAfford(
    state,
    sponsored.map((each) => ({ ...each, sender: PAYMASTER_ADDRESS, calls: [] })),
  );
}

/** Returns whether the sender is a smart account, or becomes one by an authorization in this operation. */
function isOrWillBeAccount({ state }: EvmParts, { sender, authorizations }: EvmPlan): boolean {
  const next = BigInt(state.accounts.nonce(sender, ''));
  return (
    state.accounts.delegate(sender) === SIMPLE_ACCOUNT_ADDRESS ||
    authorizations.some(
      ({ authority, contract, nonce }) =>
        authority === sender && contract === SIMPLE_ACCOUNT_ADDRESS && nonce >= next,
    )
  );
}
