import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import { bytesTo0xHex, bytesToHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';
import { NATIVE } from '../../ledger.ts';
import type { Block } from '../../pool.ts';
import { PAYMASTER_ADDRESS } from '../../sponsors.ts';
import { numberIn, wordOf } from '../contracts/storage-layout.ts';
import { codeAt, type EvmState } from '../state.ts';
import {
  createSender,
  depositOf,
  laneOf,
  type PackedOperation,
  pay,
  requirement,
  senderCreatorOf,
  setDeposit,
} from './entry-point.ts';
import {
  accountDeployed,
  beforeExecution,
  entryPoints,
  type OperationKey,
  revertReason,
  userOperationEvent,
} from './events.ts';
import { type Frame, ProgramRevertError } from './frames.ts';
import { hashOfPacked, isDelegateMarker, type Limits, limitsOf, uint128s } from './packed-operation.ts';

/** Executes the operations of `handleOps`. Source: account-abstraction 0.7 to 0.9, EntryPoint.sol. */

/** CHOICE: the gas that the entry point itself uses per bundle, and per operation. */
export const BUNDLE_GAS = 5_000n;
export const OPERATION_GAS = 40_000n;
/** The unused gas for which an operation pays no penalty, since 0.8. */
const FREE_UNUSED_GAS = 40_000n;
const MAX_GAS = 2n ** 120n - 1n;
// executeUserOp(PackedUserOperation,bytes32)
const EXECUTE_USER_OP = '8dd7712f';
// FailedOp(uint256,string) and FailedOpWithRevert(uint256,string,bytes)
const FAILED_OP = '220266b6';
const FAILED_OP_WITH_REVERT = '65c8fd4d';

const struct =
  'struct PackedUserOperation { address sender; uint256 nonce; bytes initCode; bytes callData; bytes32 accountGasLimits; uint256 preVerificationGas; bytes32 gasFees; bytes paymasterAndData; bytes signature; }';
const validateUserOp = AbiFunction.from([
  struct,
  'function validateUserOp(PackedUserOperation userOp, bytes32 userOpHash, uint256 missingAccountFunds)',
]);
const validatePaymasterUserOp = AbiFunction.from([
  struct,
  'function validatePaymasterUserOp(PackedUserOperation userOp, bytes32 userOpHash, uint256 maxCost)',
]);
const executeUserOp = AbiFunction.from([
  struct,
  'function executeUserOp(PackedUserOperation userOp, bytes32 userOpHash)',
]);
const postOp = AbiFunction.from(
  'function postOp(uint8 mode, bytes context, uint256 actualGasCost, uint256 actualUserOpFeePerGas)',
);
const contextAndData = AbiParameters.from('bytes context, uint256 validationData');

/** Observes an operation to estimate its gas. Its signature is not verified then. */
export interface OperationEstimate {
  /** Called with the gas for creating and validating the account, and for validating the paymaster. */
  verified(gas: { readonly ofAccount: bigint; readonly ofPaymaster: bigint }): void;
  executed(result: { readonly gas: bigint; readonly succeeds: boolean; readonly returned: Uint8Array }): void;
}

interface Context {
  readonly state: EvmState;
  readonly block: Block;
  readonly estimate: OperationEstimate | undefined;
}

/** A validated operation, and what its execution needs. */
interface Validated {
  readonly key: OperationKey;
  readonly operation: PackedOperation;
  readonly limits: Limits;
  readonly prefund: bigint;
  readonly verificationGas: bigint;
  /** The data that the paymaster wants to receive after the operation. */
  readonly context: Uint8Array;
}

/** Validates all operations, then executes them, and pays the beneficiary. */
export async function handleOperations(
  frame: Frame,
  context: Context,
  {
    operations,
    beneficiary,
  }: { readonly operations: readonly PackedOperation[]; readonly beneficiary: string },
): Promise<void> {
  frame.charge(BUNDLE_GAS);
  const validated: Validated[] = [];
  for (const [index, operation] of operations.entries()) {
    validated.push(await validate(frame, context, { index, operation }));
  }
  frame.log(beforeExecution(frame.address));
  let collected = 0n;
  for (const [index, each] of validated.entries())
    collected += await execute(frame, context, { index, each });
  if (BigInt(beneficiary) === 0n) throw requirement('AA90 invalid beneficiary');
  await pay(frame, beneficiary, collected, 'AA91 failed send to beneficiary');
}

function failed(index: number, reason: string, data?: Uint8Array): ProgramRevertError {
  const text = bytesToHex(utf8ToBytes(reason));
  const tail = (digits: string): string =>
    wordOf(digits.length / 2) + digits.padEnd(Math.ceil(digits.length / 64) * 64, '0');
  if (data === undefined) {
    return new ProgramRevertError(hexToBytes(FAILED_OP + wordOf(index) + wordOf(64) + tail(text)));
  }
  const first = tail(text);
  const head = wordOf(index) + wordOf(96) + wordOf(96 + first.length / 2);
  return new ProgramRevertError(hexToBytes(FAILED_OP_WITH_REVERT + head + first + tail(bytesToHex(data))));
}

async function validate(
  frame: Frame,
  context: Context,
  { index, operation }: { readonly index: number; readonly operation: PackedOperation },
): Promise<Validated> {
  frame.charge(OPERATION_GAS);
  const { state, estimate } = context;
  const { address: entryPoint } = frame;
  const sender = operation.sender.toLowerCase();
  const limits = limitsOf(operation);
  const { verification, call, preVerification, maxFee, paymaster, paymasterVerification, paymasterPostOp } =
    limits;
  const gas = [verification, call, preVerification, paymasterVerification, paymasterPostOp];
  if ([...gas, maxFee, limits.priorityFee].some((each) => each > MAX_GAS)) {
    throw failed(index, 'AA94 gas values overflow');
  }
  const hash = hashOfPacked(state, entryPoint, operation);
  const key = { hash, sender, nonce: operation.nonce, paymaster };
  const prefund = gas.reduce((sum, each) => sum + each, 0n) * maxFee;
  const created = await prepareSender(frame, context, { index, operation, key });
  if (codeAt(state, sender).length === 0) throw failed(index, 'AA20 account not deployed');
  const held = depositOf(state, entryPoint, sender).amount;
  const missing = paymaster === undefined && held < prefund ? prefund - held : 0n;
  const data = AbiFunction.encodeData(validateUserOp, [operation, hash as `0x${string}`, missing]);
  const left = verification - created;
  if (left < 0n) throw failed(index, 'AA26 over verificationGasLimit');
  const validation = await frame.call({ to: sender, data: hexToBytes(data.slice(2)), gas: left });
  if (!validation.succeeds || validation.returned.length !== 32) {
    throw failed(index, 'AA23 reverted', validation.returned);
  }
  if (paymaster === undefined)
    charge(frame, state, { account: sender, prefund, fault: failed(index, "AA21 didn't pay prefund") });
  useNonce(frame, state, failed(index, 'AA25 invalid account nonce'), operation);
  requireValid(validation.returned, context, (reason) => failed(index, reason), {
    ...{ signature: 'AA24 signature error', time: 'AA22 expired or not due' },
  });
  const verificationGas = created + validation.gasUsed;
  const { gasUsed: ofPaymaster, context: wanted } =
    paymaster === undefined
      ? { gasUsed: 0n, context: new Uint8Array() }
      : await validatePaymaster(frame, context, { index, operation, hash, paymaster, prefund, limits });
  estimate?.verified({ ofAccount: verificationGas, ofPaymaster });
  return {
    ...{ key, operation, limits, prefund, context: wanted },
    verificationGas: verificationGas + ofPaymaster,
  };
}

/** Creates the account if the operation names a factory. Returns the gas that this used. */
async function prepareSender(
  frame: Frame,
  { state }: Context,
  {
    index,
    operation,
    key,
  }: { readonly index: number; readonly operation: PackedOperation; readonly key: OperationKey },
): Promise<bigint> {
  const { initCode } = operation;
  if (initCode === '0x') return 0n;
  const bytes = hexToBytes(initCode.slice(2));
  const [gas] = uint128s(operation.accountGasLimits);
  if (isDelegateMarker(initCode)) {
    if (bytes.length <= 20) return 0n;
    const from = senderCreatorOf(frame.address);
    const called = await frame.call({ from, to: key.sender, data: bytes.subarray(20), gas });
    if (!called.succeeds) throw failed(index, 'AA13 EIP7702 sender init failed', called.returned);
    return called.gasUsed;
  }
  const code = codeAt(state, key.sender);
  if (code.length > 0) {
    // Since 0.9, a factory is ignored when the account exists.
    if (entryPoints.get(frame.address) === '0.9') return 0n;
    throw failed(index, 'AA10 sender already constructed');
  }
  if (bytes.length < 20) throw failed(index, 'AA99 initCode too small');
  const { sender, gasUsed } = await createSender(frame, { initCode: bytes, gas });
  if (BigInt(sender) === 0n) throw failed(index, 'AA13 initCode failed or OOG');
  if (sender !== key.sender) throw failed(index, 'AA14 initCode must return sender');
  if (codeAt(state, key.sender).length === 0) throw failed(index, 'AA15 initCode must create sender');
  frame.log(accountDeployed(frame.address, key, bytesTo0xHex(bytes.subarray(0, 20))));
  return gasUsed;
}

/** Deducts the maximum cost of an operation from a deposit. */
function charge(
  { address }: Frame,
  state: EvmState,
  { account, prefund, fault }: { account: string; prefund: bigint; fault: ProgramRevertError },
): void {
  // The sandbox's own paymaster has no deposit. It pays from its balance.
  if (account === PAYMASTER_ADDRESS) {
    if (state.ledger.balance(account, NATIVE) < prefund) throw fault;
    state.ledger.debit({ owner: account, asset: NATIVE, amount: prefund, shortfall: 'prefund' });
    state.ledger.credit(address, NATIVE, prefund);
    return;
  }
  const held = depositOf(state, address, account);
  if (held.amount < prefund) throw fault;
  setDeposit(state, address, account, { ...held, amount: held.amount - prefund });
}

function giveBack({ address }: Frame, state: EvmState, account: string, amount: bigint): void {
  if (account === PAYMASTER_ADDRESS) {
    state.ledger.debit({ owner: address, asset: NATIVE, amount, shortfall: 'refund' });
    state.ledger.credit(account, NATIVE, amount);
    return;
  }
  const held = depositOf(state, address, account);
  setDeposit(state, address, account, { ...held, amount: held.amount + amount });
}

function useNonce(
  { address }: Frame,
  { accounts }: EvmState,
  fault: ProgramRevertError,
  { sender, nonce }: PackedOperation,
): void {
  const account = sender.toLowerCase();
  const lane = laneOf(address, nonce >> 64n);
  const next = accounts.nonce(account, lane);
  if (BigInt(next) !== BigInt.asUintN(64, nonce)) throw fault;
  accounts.setNonce(account, lane, next + 1);
}

// validationData = authorizer (160 bits) | validUntil (48) | validAfter (48), from the lowest bit
function requireValid(
  word: Uint8Array,
  { block, estimate }: Context,
  fault: (reason: string) => ProgramRevertError,
  reasons: { readonly signature: string; readonly time: string },
): void {
  const data = numberIn(bytesToHex(word));
  const until = BigInt.asUintN(48, data >> 160n);
  const now = BigInt(block.seconds);
  // In an estimate, the signature is a placeholder.
  if (BigInt.asUintN(160, data) !== 0n && estimate === undefined) throw fault(reasons.signature);
  if ((until !== 0n && now > until) || now <= data >> 208n) {
    if (data >> 160n !== 0n) throw fault(reasons.time);
  }
}

async function validatePaymaster(
  frame: Frame,
  context: Context,
  {
    index,
    operation,
    hash,
    paymaster,
    prefund,
    limits,
  }: {
    readonly index: number;
    readonly operation: PackedOperation;
    readonly hash: string;
    readonly paymaster: string;
    readonly prefund: bigint;
    readonly limits: Validated['limits'];
  },
): Promise<{ readonly gasUsed: bigint; readonly context: Uint8Array }> {
  const { state } = context;
  if (codeAt(state, paymaster).length === 0) throw failed(index, 'AA30 paymaster not deployed');
  charge(frame, state, {
    account: paymaster,
    prefund,
    fault: failed(index, 'AA31 paymaster deposit too low'),
  });
  // SIMULATED: the sandbox's own paymaster sponsors every operation.
  if (paymaster === PAYMASTER_ADDRESS) return { gasUsed: 0n, context: new Uint8Array() };
  const data = AbiFunction.encodeData(validatePaymasterUserOp, [operation, hash as `0x${string}`, prefund]);
  const gas = limits.paymasterVerification;
  const called = await frame.call({ to: paymaster, data: hexToBytes(data.slice(2)), gas });
  if (!called.succeeds) throw failed(index, 'AA33 reverted', called.returned);
  const { wanted, word } = readContext(called.returned, failed(index, 'AA33 reverted', called.returned));
  requireValid(word, context, (reason) => failed(index, reason), {
    ...{ signature: 'AA34 signature error', time: 'AA32 paymaster expired or not due' },
  });
  return { gasUsed: called.gasUsed, context: wanted };
}

function readContext(
  returned: Uint8Array,
  fault: ProgramRevertError,
): { wanted: Uint8Array; word: Uint8Array } {
  try {
    const [wanted, word] = AbiParameters.decode(contextAndData, bytesTo0xHex(returned));
    return { wanted: hexToBytes(wanted.slice(2)), word: hexToBytes(wordOf(word)) };
  } catch {
    throw fault;
  }
}

/** Executes an operation and returns its cost. */
async function execute(
  frame: Frame,
  context: Context,
  { index, each }: { readonly index: number; readonly each: Validated },
): Promise<bigint> {
  const { key, operation, limits, prefund } = each;
  const { state, estimate } = context;
  const price = priceOf(state, limits);
  let executionGas = 0n;
  let succeeds = true;
  let refusal: Uint8Array | undefined;
  const costOf = (): { gasUsed: bigint; gasCost: bigint } => {
    const gasUsed = OPERATION_GAS + each.verificationGas + executionGas + limits.preVerification;
    const used = gasUsed + penaltyOf(frame, limits, executionGas);
    return { gasUsed: used, gasCost: used * price };
  };
  await frame.attempt(async () => {
    const data = callDataOf(operation, key.hash);
    if (data.length > 0) {
      const called = await frame.call({ to: key.sender, data, gas: limits.call });
      ({ succeeds } = called);
      executionGas += called.gasUsed;
      estimate?.executed({ ...called, gas: called.gasUsed });
      if (!succeeds && called.returned.length > 0) {
        frame.log(revertReason(frame.address, key, { reason: called.returned }));
      }
    }
    if (each.context.length === 0) return true;
    const args = [succeeds ? 0 : 1, bytesTo0xHex(each.context), costOf().gasCost, price] as const;
    const done = await frame.call({
      ...{ to: key.paymaster!, data: hexToBytes(AbiFunction.encodeData(postOp, args).slice(2)) },
      gas: limits.paymasterPostOp,
    });
    executionGas += done.gasUsed;
    if (!done.succeeds) refusal = done.returned;
    return done.succeeds;
  });
  if (refusal !== undefined) {
    succeeds = false;
    frame.log(revertReason(frame.address, key, { reason: refusal, isOfPaymaster: true }));
  }
  const { gasUsed, gasCost } = costOf();
  if (gasCost > prefund) throw failed(index, 'AA51 prefund below actualGasCost');
  giveBack(frame, state, key.paymaster ?? key.sender, prefund - gasCost);
  frame.log(userOperationEvent(frame.address, key, { succeeds, gasCost, gasUsed }));
  return gasCost;
}

/** Returns the calldata with which the entry point calls the account. */
function callDataOf(operation: PackedOperation, hash: string): Uint8Array {
  const { callData } = operation;
  if (!callData.startsWith(`0x${EXECUTE_USER_OP}`)) return hexToBytes(callData.slice(2));
  return hexToBytes(AbiFunction.encodeData(executeUserOp, [operation, hash as `0x${string}`]).slice(2));
}

// The penalty is 10 % of the unused gas of the execution; since 0.8, only if more than 40,000 is unused.
function penaltyOf({ address }: Frame, { call, paymasterPostOp }: Validated['limits'], used: bigint): bigint {
  const unused = call + paymasterPostOp - used;
  const free = entryPoints.get(address) === '0.7' ? 0n : FREE_UNUSED_GAS;
  return unused > free ? unused / 10n : 0n;
}

// effective price = min(fee cap, base fee + tip)
function priceOf(
  { baseFee }: EvmState,
  { maxFee, priorityFee }: { readonly maxFee: bigint; readonly priorityFee: bigint },
): bigint {
  return maxFee < baseFee + priorityFee ? maxFee : baseFee + priorityFee;
}
