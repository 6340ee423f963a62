import { bytesTo0xHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { contractAddress } from '../../../../engine/signing/ethereum/signer.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../engine/signing/ethereum/smart-accounts.ts';
import type { Machine } from '../blocks.ts';
import { type Movement, NATIVE, RevertError } from '../ledger.ts';
import type { Block, Execution, Pool, PoolEntry } from '../pool.ts';
import { BUNDLER_ADDRESS } from '../sponsors.ts';
import { buyGas, canAfford } from './gas-payment.ts';
import type { ExecutionBlock, Interpreter } from './interpreter.ts';
import { makeOverlay, type Overlay } from './overlay.ts';
import type { EvmPlan, PlannedAuthorization } from './plan.ts';
import { readsOf } from './reads.ts';
import { type EvmLog, type NewReceipt, storeReceipt } from './receipts.ts';
import { codeAt, type EvmState } from './state.ts';
import { logsOfBundle } from './user-operations/events.ts';

/** The gas limit of a block, which is also the maximum gas of one call. */
export const BLOCK_GAS_LIMIT = 30_000_000n;
/** The maximum gas of one transaction (EIP-7825). */
export const TRANSACTION_GAS_CAP = 16_777_216n;
/** The prefix of the nonce lanes of user operations. The entry point counts nonces per key. */
export const OPERATION_LANE = 'operation ';
const NEW_AUTHORITY_GAS = 25_000n;
const KNOWN_AUTHORITY_GAS = 12_500n;
/** No authorization can have this nonce (EIP-7702). */
const MAX_NONCE = 2n ** 64n - 1n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

export interface EvmRun {
  readonly gasUsed: bigint;
  /** The minimum gas limit. It can exceed the gas used, because refunds are paid after the execution. */
  readonly gasNeeded: bigint;
  /** Whether code ran. Code may need a higher limit than the gas that it uses (EIP-150, EIP-2200). */
  readonly needsMoreGas: boolean;
  /** The return data of the last call, or the data of its revert. */
  readonly returned: Uint8Array;
  readonly revert: RevertError | undefined;
  readonly movements: readonly Movement[];
  readonly logs: readonly EvmLog[];
}

/** Returns the machine that executes EVM transactions as a node would. */
export function makeEvmMachine(
  state: EvmState,
  pool: Pool<EvmPlan>,
  interpreter: () => Promise<Interpreter>,
): Machine<EvmPlan> {
  return {
    readiness: (entry, nowSeconds) => readinessOf(state, entry, nowSeconds),
    async execute(entry, block) {
      const loaded = await interpreter();
      const overlay = makeOverlay(state);
      // The payer may have spent its funds since the check of readiness.
      if (!canAfford(overlay.state, [entry.plan])) return () => undefined;
      const { execution, receipt } = await include(loaded, overlay, { entry, block });
      return () => {
        if (!overlay.isCurrent()) return undefined;
        overlay.apply();
        storeReceipt(state, receipt, readsOf(overlay));
        return execution;
      };
    },
    replacementOf({ sender, lane, nonce = 0, hash, plan }) {
      if (plan.sentinel !== 'replaced' || state.accounts.nonce(sender, lane) > nonce)
        return pool.ofNonce(sender, lane, nonce) ?? null;
      // The transaction that replaces this one is not real. It only uses up the nonce.
      state.accounts.setNonce(sender, lane, nonce + 1);
      return sentinelReplacementHash(hash);
    },
  };
}

// CHOICE: if the recipient's address triggers a replacement of the transaction, the replacement's hash is the original
// hash with all bits inverted.
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
 * Returns whether the sender is a smart account when the operation runs. The operation's authorization is applied
 * first. An authorization with a later nonce waits for the transactions before it, because the chain would skip it
 * and its nonce would never be used.
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

/**
 * Executes a transaction and charges its fee, in an overlay. Returns its execution and its receipt, which are not
 * stored yet.
 */
export async function include(
  interpreter: Interpreter,
  overlay: Overlay,
  { entry, block }: { entry: PoolEntry<EvmPlan>; block: Block },
): Promise<{ execution: Execution; receipt: NewReceipt }> {
  const { plan, sender, lane, nonce = 0 } = entry;
  const { state } = overlay;
  state.accounts.setNonce(sender, lane, nonce + 1);
  const gas = buyGas(state, plan);
  const run = await runEvm(interpreter, overlay, plan, { gasPrice: gas.price, block, isIncluded: true });
  const fee = gas.settle(run.gasUsed);
  const [call] = plan.calls;
  const execution = { fee, failure: run.revert?.message, movements: run.movements };
  const paid = { hash: entry.hash, block, gasUsed: run.gasUsed, gasPrice: gas.price };
  const receipt: NewReceipt = {
    ...{ ...paid, sender: plan.sender, recipient: call?.to ?? null },
    contract: call?.to === null ? contractAddress(plan.sender, nonce) : null,
    ...{ isReverted: run.revert !== undefined, logs: run.logs },
  };
  if (!lane.startsWith(OPERATION_LANE)) return { execution, receipt };
  // The bundle's transaction succeeds even if the operations in it fail.
  const bundle = { contract: ENTRY_POINT_ADDRESS, chainId: state.chainId, bytes: plan.operation! };
  const result = { succeeds: !receipt.isReverted, gasCost: fee, gasUsed: run.gasUsed };
  const logs = logsOfBundle(bundle, { ...result, logs: run.logs, failure: execution.failure });
  const ends = { sender: BUNDLER_ADDRESS, recipient: ENTRY_POINT_ADDRESS };
  return { execution, receipt: { ...receipt, ...ends, isReverted: false, logs } };
}

type Runnable = Pick<
  EvmPlan,
  'sender' | 'calls' | 'authorizations' | 'accessList' | 'gasLimit' | 'intrinsicGas' | 'floorGas' | 'sentinel'
>;

/**
 * Executes the calls and reverts all of them if one fails. The caller has already incremented the sender's nonce.
 *
 * @param isIncluded false in a dry run. A recipient address that makes transactions fail then has no effect, because
 * only included transactions fail.
 */
export async function runEvm(
  interpreter: Interpreter,
  overlay: Overlay,
  plan: Runnable,
  { gasPrice, block, isIncluded }: { gasPrice: bigint; block: ExecutionBlock; isIncluded: boolean },
): Promise<EvmRun> {
  const delegated = delegateAccounts(overlay.state, plan.authorizations);
  let { refund } = delegated;
  return interpreter.transaction(overlay, block, async (calls) => {
    overlay.checkpoint();
    let executed = 0n;
    const logs: EvmLog[] = [];
    let revert: RevertError | undefined;
    let returned: Uint8Array = new Uint8Array();
    for (const { to, value, data } of plan.calls) {
      const left = plan.gasLimit - plan.intrinsicGas - executed;
      const result = await calls.run({
        ...{ from: plan.sender, to, value, data: hexToBytes(data.slice(2)), gasPrice },
        ...{ gasLimit: left > 0n ? left : 0n, accessList: plan.accessList },
        authorities: delegated.authorities,
      });
      executed += result.gasUsed;
      refund += result.refund;
      logs.push(...result.logs);
      ({ revert, returned } = result);
      if (revert !== undefined) break;
    }
    if (isIncluded && plan.sentinel === 'reverted') revert ??= new RevertError('execution reverted');
    if (revert === undefined) overlay.commit();
    else overlay.revert();
    const gasUsed = gasOf(plan, executed, refund);
    return {
      gasUsed: gasUsed > plan.gasLimit ? plan.gasLimit : gasUsed,
      gasNeeded: gasOf(plan, executed, 0n),
      needsMoreGas: executed > 0n,
      ...{ revert, returned },
      movements: revert === undefined ? calls.movements : [],
      logs: revert === undefined ? logs : [],
    };
  });
}

/** Calls a contract without changing anything, and returns the result, or undefined if the call reverts. */
export async function readContract(
  interpreter: Interpreter,
  state: EvmState,
  { block, to, data }: { block: Block; to: string; data: Uint8Array },
): Promise<Uint8Array | undefined> {
  return interpreter.transaction(makeOverlay(state), block, async (calls) => {
    const { returned, revert } = await calls.run({
      ...{ from: NO_ADDRESS, to, value: 0n, data },
      ...{ gasLimit: BLOCK_GAS_LIMIT, gasPrice: 0n, accessList: [] },
    });
    return revert === undefined ? returned : undefined;
  });
}

// used = max(floor, spent - min(refund, spent / 5))  (EIP-3529, EIP-7623)
function gasOf({ intrinsicGas, floorGas }: Runnable, executed: bigint, refund: bigint): bigint {
  const spent = intrinsicGas + executed;
  const cap = spent / 5n;
  const used = spent - (refund < cap ? refund : cap);
  return used < floorGas ? floorGas : used;
}

/**
 * Applies the valid authorizations and returns the gas refund and the signers. They stay applied even if the
 * transaction fails later (EIP-7702).
 */
function delegateAccounts(
  state: EvmState,
  authorizations: readonly PlannedAuthorization[],
): { readonly refund: bigint; readonly authorities: readonly string[] } {
  const { accounts, ledger } = state;
  let refund = 0n;
  const authorities: string[] = [];
  for (const { contract, chainId, nonce, authority } of authorizations) {
    const isHere = chainId === 0 || BigInt(chainId) === state.chainId;
    if (authority === null) continue;
    // A trace shows the previous state of every signer, even if its authorization is skipped.
    const [next, balance] = [accounts.nonce(authority, ''), ledger.balance(authority, NATIVE)];
    const code = codeAt(state, authority);
    if (!isHere || nonce >= MAX_NONCE) continue;
    authorities.push(authority);
    const isContract = code.length > 0 && accounts.delegate(authority) === undefined;
    if (nonce !== BigInt(next) || isContract) continue;
    const isKnown = next > 0 || balance > 0n || code.length > 0;
    if (isKnown) refund += NEW_AUTHORITY_GAS - KNOWN_AUTHORITY_GAS;
    accounts.setDelegate(authority, contract === NO_ADDRESS ? undefined : contract);
    accounts.setNonce(authority, '', next + 1);
  }
  return { refund, authorities };
}
