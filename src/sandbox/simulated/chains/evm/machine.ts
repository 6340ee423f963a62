import { bytesTo0xHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { BATCH_EXECUTOR_ADDRESS, decodeBatch } from '../../../../engine/signing/ethereum/batch-executor.ts';
import { contractAddress } from '../../../../engine/signing/ethereum/signer.ts';
import { SIMPLE_ACCOUNT_ADDRESS } from '../../../../engine/signing/ethereum/simple-account.ts';
import { decodeTokenCall, type TokenCall } from '../../../../engine/signing/ethereum/token-calls.ts';
import type { Machine } from '../blocks.ts';
import { type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { Block, Execution, Pool, PoolEntry } from '../pool.ts';
import { applyTokenCall } from '../token-effects.ts';
import { type EvmState, effectsOf, type Frame, moveValue } from './frame.ts';
import { canAfford, withGas } from './gas-payment.ts';
import type { EvmPlan, PlannedAuthorization, PlannedCall } from './plan.ts';
import { programAt } from './programs/find-program.ts';
import type { ProgramCall } from './programs/program.ts';

// CHOICE: gas per token call, close to that of common token contracts.
const TOKEN_GAS: Readonly<Record<TokenCall['name'], bigint>> = {
  transfer: 30_000n,
  approve: 25_000n,
  transferFrom: 38_000n,
};
/** Also the maximum gas of one transaction. */
export const BLOCK_GAS_LIMIT = 30_000_000n;
/** Prefix of the nonce lanes of user operations: the entry point counts nonces per key. */
export const OPERATION_LANE = 'operation ';
const BATCHED_CALL_GAS = 3_000n;
const BATCHED_VALUE_GAS = 9_000n;
const NEW_AUTHORITY_GAS = 25_000n;
const KNOWN_AUTHORITY_GAS = 12_500n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

export interface EvmRun {
  readonly gasUsed: bigint;
  /** The least gas limit: refunds are paid after the execution. */
  readonly gasNeeded: bigint;
  readonly revert: RevertError | undefined;
  readonly movements: readonly Movement[];
}

/** Executes EVM transactions like a node, limited to the contracts that simulated chains support. */
export function makeEvmMachine(state: EvmState, pool: Pool<EvmPlan>): Machine<EvmPlan> {
  return {
    readiness: (entry, nowSeconds) => readinessOf(state, entry, nowSeconds),
    run: (entry, block) => include(state, entry, block),
    replacementOf({ sender, lane, nonce = 0, hash, plan }) {
      if (plan.sentinel !== 'replaced' || state.accounts.nonce(sender, lane) > nonce)
        return pool.ofNonce(sender, lane, nonce) ?? null;
      // The sentinel's replacement does not exist as a transaction; it only uses the nonce.
      state.accounts.setNonce(sender, lane, nonce + 1);
      return sentinelReplacementHash(hash);
    },
  };
}

// CHOICE: the hash of the sentinel's replacement is the replaced hash with all bits inverted.
function sentinelReplacementHash(hash: string): string {
  return bytesTo0xHex(hexToBytes(hash.slice(2)).map((byte) => byte ^ 0xff));
}

function readinessOf(state: EvmState, entry: PoolEntry<EvmPlan>, nowSeconds: number) {
  const { plan, sender, lane, nonce = 0 } = entry;
  const next = state.accounts.nonce(sender, lane);
  if (nonce < next) return 'replaced';
  if (plan.validBefore !== null && nowSeconds >= plan.validBefore) return 'drop';
  if (nonce > next || plan.sentinel === 'stuck' || nowSeconds < plan.validAfter) return 'waits';
  if (lane.startsWith(OPERATION_LANE)) {
    if (!acceptsOperations(state, plan)) return 'waits';
  } else if (plan.sentinel === 'replaced') return 'replaced';
  return canAfford(state, [plan]) ? 'ready' : 'drop';
}

/**
 * Whether the sender is an account when the operation runs. Its authorization is applied first; one with a later nonce
 * waits for the transactions before it, since the chain would skip it and the nonce would never be used.
 */
function acceptsOperations({ accounts, chainId }: EvmState, { sender, authorizations }: EvmPlan): boolean {
  const next = BigInt(accounts.nonce(sender, ''));
  const own = authorizations.filter(
    ({ authority, chainId: here }) => authority === sender && (here === 0 || BigInt(here) === chainId),
  );
  if (own.some(({ nonce }) => nonce > next)) return false;
  if (own.some(({ nonce, contract }) => nonce === next && contract === SIMPLE_ACCOUNT_ADDRESS)) return true;
  return accounts.delegate(sender) === SIMPLE_ACCOUNT_ADDRESS;
}

function include(state: EvmState, entry: PoolEntry<EvmPlan>, block: Block): Execution {
  const { plan, sender, lane, nonce = 0 } = entry;
  state.accounts.setNonce(sender, lane, nonce + 1);
  let run: EvmRun | undefined;
  const fee = withGas(state, plan, () => {
    run = runEvm(state, plan, { nonce, block, isIncluded: true });
    return run;
  });
  return { fee, failure: run?.revert?.message, movements: run?.movements ?? [] };
}

type Runnable = Pick<
  EvmPlan,
  'sender' | 'calls' | 'authorizations' | 'gasLimit' | 'intrinsicGas' | 'floorGas' | 'sentinel'
>;

/**
 * Executes the calls and reverts all of them when one fails. The caller has already incremented the sender's nonce.
 * `isIncluded` is false in a dry run, where the revert sentinel has no effect: it only makes included transactions
 * fail.
 */
export function runEvm(
  state: EvmState,
  plan: Runnable,
  { nonce, block, isIncluded }: { nonce: number; block: Block; isIncluded: boolean },
): EvmRun {
  const frame: Frame = { state, block, movements: [], gas: 0n };
  const refund = delegateAccounts(state, plan.authorizations);
  let revert: RevertError | undefined;
  try {
    state.store.atomically(() => {
      for (const call of plan.calls) runCall(frame, plan.sender, call, nonce);
      if (isIncluded && plan.sentinel === 'reverted') throw new RevertError('execution reverted');
      if (gasOf(plan, frame.gas, 0n) > plan.gasLimit) throw new RevertError('out of gas');
    });
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    revert = error;
  }
  const gasUsed = gasOf(plan, frame.gas, refund);
  return {
    gasUsed: gasUsed > plan.gasLimit ? plan.gasLimit : gasUsed,
    gasNeeded: gasOf(plan, frame.gas, 0n),
    revert,
    movements: revert === undefined ? frame.movements : [],
  };
}

// used = max(floor, spent - min(refund, spent / 5))  (EIP-3529, EIP-7623)
function gasOf({ intrinsicGas, floorGas }: Runnable, executed: bigint, refund: bigint): bigint {
  const spent = intrinsicGas + executed;
  const cap = spent / 5n;
  const used = spent - (refund < cap ? refund : cap);
  return used < floorGas ? floorGas : used;
}

/** Applies the valid authorizations, which a later failure does not revert (EIP-7702). Returns the gas refund. */
function delegateAccounts(state: EvmState, authorizations: readonly PlannedAuthorization[]): bigint {
  const { accounts, ledger } = state;
  let refund = 0n;
  for (const { contract, chainId, nonce, authority } of authorizations) {
    const isHere = chainId === 0 || BigInt(chainId) === state.chainId;
    if (authority === null || !isHere || nonce !== BigInt(accounts.nonce(authority, ''))) continue;
    const isKnown = accounts.nonce(authority, '') > 0 || ledger.balance(authority, NATIVE) > 0n;
    if (isKnown) refund += NEW_AUTHORITY_GAS - KNOWN_AUTHORITY_GAS;
    accounts.setDelegate(authority, contract === NO_ADDRESS ? undefined : contract);
    accounts.setNonce(authority, '', Number(nonce) + 1);
  }
  return refund;
}

function runCall(frame: Frame, from: string, { to, value, data }: PlannedCall, nonce: number): void {
  const { accounts } = frame.state;
  const recipient = to ?? contractAddress(from, nonce);
  const bytes = hexToBytes(data.slice(2));
  const delegate = accounts.delegate(recipient);
  moveValue(frame, from, recipient, value);
  if (delegate === BATCH_EXECUTOR_ADDRESS) runBatch(frame, from, recipient, data);
  else if (delegate === undefined && to !== null) runContract(frame, recipient, { from, value, data: bytes });
}

function runContract(frame: Frame, address: string, call: ProgramCall): void {
  const program = programAt(frame.state, address);
  const token = program === undefined ? decodeTokenCall(call.data) : undefined;
  program?.run(frame, call);
  // CHOICE: an unsupported contract accepts the value and does nothing else.
  if (token === undefined) return;
  frame.gas += TOKEN_GAS[token.name];
  applyTokenCall(effectsOf(frame), { from: call.from, token: address, value: call.value }, token);
}

function runBatch(frame: Frame, from: string, account: string, data: string): void {
  if (data === '0x') return;
  const calls = decodeBatch(hexToBytes(data.slice(2)));
  if (calls === undefined) throw new RevertError('execution reverted: unsupported execution mode');
  if (from !== account) throw new RevertError('execution reverted: unauthorized');
  for (const { to, value, data: inner } of calls) {
    frame.gas += BATCHED_CALL_GAS + (value > 0n ? BATCHED_VALUE_GAS : 0n);
    runCall(frame, account, { to: to === NO_ADDRESS ? account : to, value, data: bytesTo0xHex(inner) }, 0);
  }
}
