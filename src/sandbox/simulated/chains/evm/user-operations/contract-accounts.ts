import { bytesToHex, bytesToUtf8, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import {
  encodeSponsoredOperation,
  hashSponsoredOperation,
  type SponsoredOperation,
} from '../../../../../engine/signing/ethereum/user-operation.ts';
import type { BroadcastOutcome } from '../../../../../ports/chains.ts';
import { refuse } from '../../decode-or-refuse.ts';
import { NATIVE } from '../../ledger.ts';
import { BUNDLER_ADDRESS, PAYMASTER_ADDRESS } from '../../sponsors.ts';
import { numberIn, wordOf } from '../contracts/storage-layout.ts';
import { fundEvm } from '../faucet.ts';
import { type Interpreter, watched } from '../interpreter.ts';
import { runEvm, TRANSACTION_GAS_CAP } from '../machine.ts';
import type { Overlay } from '../overlay.ts';
import type { EvmParts } from '../parts.ts';
import { type EvmPlan, gasBefore, planAuthorizations } from '../plan.ts';
import { encodeHandleOps, type PackedOperation } from './entry-point.ts';
import { entryPointOf } from './events.ts';
import { BUNDLE_GAS, OPERATION_GAS } from './handle-operations.ts';
import { packOperation } from './packed-operation.ts';

/**
 * Runs operations of accounts that are contracts: the bundler sends each in a transaction that calls the entry point.
 * The accounts of wallets have no code; `bundler.ts` runs their operations.
 */

const FAILED_OPS = ['220266b6', '65c8fd4d'];
const DELEGATE_MARKER = '0x7702000000000000000000000000000000000000';
const REFILL = 10n ** 19n;
/** CHOICE: estimates run the execution and each validation with this much gas. */
const TRIED_GAS = 5_000_000n;
/** CHOICE: estimates exceed the gas that was used by a quarter and 10,000, because callers keep 1/64 of their gas. */
const withMargin = (used: bigint): bigint => (used * 5n) / 4n + 10_000n;

function packed({ user_operation: operation, authorization }: SponsoredOperation): PackedOperation {
  const { factory, factory_data: data = '0x', paymaster, paymaster_data: more = '0x' } = operation;
  const isDelegate =
    authorization !== undefined && factory?.toLowerCase() === authorization.contract.toLowerCase();
  const uint128 = (value: string | undefined): string => wordOf(BigInt(value ?? 0)).slice(32);
  const { paymaster_verification_gas_limit: verification, paymaster_post_op_gas_limit: postOp } = operation;
  return packOperation({
    ...{ sender: operation.sender, nonce: BigInt(operation.nonce), callData: operation.call_data },
    initCode: factory === undefined ? '0x' : `${isDelegate ? DELEGATE_MARKER : factory}${data.slice(2)}`,
    ...{ verification: BigInt(operation.verification_gas_limit), call: BigInt(operation.call_gas_limit) },
    preVerification: BigInt(operation.pre_verification_gas),
    priorityFee: BigInt(operation.max_priority_fee_per_gas),
    maxFee: BigInt(operation.max_fee_per_gas),
    paymasterAndData:
      paymaster === undefined
        ? '0x'
        : `${paymaster}${uint128(verification)}${uint128(postOp)}${more.slice(2)}`,
    signature: operation.signature,
  });
}

/** Returns the bundler's transaction, which contains only this operation. */
function planOf(operation: SponsoredOperation): EvmPlan {
  const { user_operation: fields, authorization } = operation;
  const data = encodeHandleOps(packed(operation), BUNDLER_ADDRESS);
  const calls = [{ to: entryPointOf(operation), value: 0n, data }];
  const authorizations =
    authorization === undefined
      ? []
      : [
          {
            ...{ contract: authorization.contract, chainId: Number(authorization.chain_id) },
            nonce: BigInt(authorization.nonce),
            signature: `${authorization.r}${authorization.s.slice(2)}0${authorization.y_parity}` as const,
          },
        ];
  const before = gasBefore(calls, { accessList: [], authorizations });
  const limits = [
    ...[fields.verification_gas_limit, fields.call_gas_limit, fields.paymaster_verification_gas_limit ?? 0],
    fields.paymaster_post_op_gas_limit ?? 0,
  ].reduce((sum: bigint, limit) => sum + BigInt(limit), 0n);
  const gas = ((limits + BUNDLE_GAS + OPERATION_GAS + 200_000n) * 64n) / 63n;
  return {
    ...{ raw: null, operation: `0x${bytesToHex(encodeSponsoredOperation(operation))}` },
    ...{ sender: BUNDLER_ADDRESS, feePayer: BUNDLER_ADDRESS, feeToken: null, calls, accessList: [] },
    authorizations: planAuthorizations(authorizations),
    ...{ ...before, gasLimit: before.intrinsicGas + gas },
    maxFeePerGas: BigInt(fields.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(fields.max_priority_fee_per_gas),
    ...{ validAfter: 0, validBefore: null, sentinel: null },
  };
}

/** Adds an operation's transaction to the pool, if a trial run succeeds. */
export async function acceptContractOperation(
  parts: EvmParts,
  overlay: () => Overlay,
  { operation, bundleHash }: { readonly operation: SponsoredOperation; readonly bundleHash: string },
): Promise<BroadcastOutcome> {
  const { state, pool, blocks, world } = parts;
  const hash = hashSponsoredOperation(operation, state.chainId);
  if (pool.isKnown(bundleHash)) return { isAccepted: true, hash };
  const plan = planOf(operation);
  if (plan.gasLimit > TRANSACTION_GAS_CAP) {
    return refuse('invalid', `AA95 out of gas: have ${TRANSACTION_GAS_CAP}, want ${plan.gasLimit}`);
  }
  if (plan.maxFeePerGas < state.baseFee) return refuse('underpriced', 'max fee below the base fee');
  const most = plan.gasLimit * plan.maxFeePerGas;
  await parts.atHead(() => {
    for (const address of [BUNDLER_ADDRESS, PAYMASTER_ADDRESS]) {
      if (most > REFILL || state.ledger.balance(address, NATIVE) >= 2n * most) continue;
      fundEvm(parts, { address, tokenAddress: null, rawAmount: 2n * REFILL });
    }
  });
  const gasPrice = state.baseFee;
  const run = await runEvm(await parts.interpreter(), overlay(), plan, {
    ...{ gasPrice, block: blocks.head(), isIncluded: false },
  });
  if (run.revert !== undefined) {
    const message = failureIn(run.returned) ?? run.revert.message;
    if (message.startsWith('AA25')) return refuse('stale', message);
    return refuse(/^AA[23]1/.test(message) ? 'insufficient_funds' : 'invalid', message);
  }
  return parts.atHead(() => {
    const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
    // Each transaction has a nonce lane of its own, so that one that is dropped does not delay the others.
    const place = {
      lane: `bundle ${bundleHash}`,
      nonce: 0,
      signers: [operation.user_operation.sender.toLowerCase()],
    };
    pool.add({ hash: bundleHash, sender: BUNDLER_ADDRESS, ...place, plan, ...times });
    return { isAccepted: true, hash };
  });
}

/** Returns the reason in `FailedOp`, with the account's own reason. Returns undefined for other data. */
function failureIn(data: Uint8Array): string | undefined {
  const text = bytesToHex(data);
  if (!FAILED_OPS.includes(text.slice(0, 8))) return undefined;
  const at = (offset: number): string => text.slice(8 + 2 * offset, 8 + 2 * (offset + 32));
  const start = Number(numberIn(at(32)));
  const length = Number(numberIn(at(start)));
  const from = 8 + 2 * (start + 32);
  return bytesToUtf8(hexToBytes(text.slice(from, from + 2 * length)));
}

interface OperationGas {
  readonly call: bigint;
  readonly verification: bigint;
  readonly preVerification: bigint;
  readonly paymasterVerification: bigint;
}

/** Estimates the gas of an operation, whose signature may be a placeholder, or returns why it fails. */
export async function estimateContractOperation(
  interpreter: Interpreter,
  parts: EvmParts,
  { operation, overlay }: { readonly operation: SponsoredOperation; readonly overlay: Overlay },
): Promise<OperationGas | { readonly failure: string; readonly data?: Uint8Array }> {
  const tried = `0x${TRIED_GAS.toString(16)}`;
  const { paymaster } = operation.user_operation;
  const plan = planOf({
    ...operation,
    user_operation: {
      ...operation.user_operation,
      ...{ call_gas_limit: tried, verification_gas_limit: tried, pre_verification_gas: '0x0' },
      // Without a gas price, no account needs funds.
      ...{ max_fee_per_gas: '0x0', max_priority_fee_per_gas: '0x0' },
      ...(paymaster === undefined
        ? {}
        : { paymaster_verification_gas_limit: '0xf4240', paymaster_post_op_gas_limit: '0xf4240' }),
    },
  });
  let [account, ofPaymaster, call] = [0n, 0n, 0n];
  let reverted: Uint8Array | undefined;
  const estimate = {
    verified(gas: { ofAccount: bigint; ofPaymaster: bigint }): void {
      account = gas.ofAccount;
      ({ ofPaymaster } = gas);
    },
    executed({ gas, succeeds, returned }: { gas: bigint; succeeds: boolean; returned: Uint8Array }): void {
      call = gas;
      if (!succeeds) reverted = returned;
    },
  };
  const run = await runEvm(watched(interpreter, { estimate }), overlay, plan, {
    ...{ gasPrice: parts.state.baseFee, block: parts.blocks.head(), isIncluded: false },
  });
  if (run.revert !== undefined) return { failure: failureIn(run.returned) ?? run.revert.message };
  if (reverted !== undefined) return { failure: 'UserOperation reverted during execution', data: reverted };
  return {
    ...{ call: withMargin(call), verification: withMargin(account) },
    preVerification: plan.intrinsicGas + BUNDLE_GAS,
    paymasterVerification: withMargin(ofPaymaster),
  };
}
