import { bytesTo0xHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { checksumAddress } from '../../../../../engine/signing/ethereum/signer.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../../engine/signing/ethereum/smart-accounts.ts';
import {
  decodeSponsoredOperation,
  encodeSponsoredOperation,
  type SponsoredOperation,
} from '../../../../../engine/signing/ethereum/user-operation.ts';
import { decodeAccountCalls } from '../../../../../engine/signing/ethereum/user-operation-calls.ts';
import type { Bundler } from '../../../../../ports/chains.ts';
import { invalid, isRecord, RpcError } from '../../rpc-calls.ts';
import { PAYMASTER_ADDRESS } from '../../sponsors.ts';
import { dryRun } from '../dry-run.ts';
import { type Interpreter, type Watch, watched } from '../interpreter.ts';
import { makeOverlay } from '../overlay.ts';
import type { EvmParts } from '../parts.ts';
import { findReceipt } from '../receipts.ts';
import { bundleOf } from '../user-operations/bundler.ts';
import { entryPointOf, entryPoints, findOperation, isOfContract } from '../user-operations/events.ts';
import { addressOf, bytesOf, hashText, numberOf, REVERTED, SERVER_ERROR } from './calls.ts';
import { overriddenState } from './overrides.ts';
import { logViews, quantity, receiptView } from './views.ts';

// The methods of a bundler (ERC-4337, ERC-7769) and of a paymaster (ERC-7677), for entry points 0.7 to 0.9.

// Error codes of ERC-7769.
const REJECTED_BY_VALIDATION = -32_500;
const REJECTED_BY_PAYMASTER = -32_501;
const INVALID_SIGNATURE = -32_507;
const REVERTED_IN_EXECUTION = -32_521;

/** CHOICE: the gas that clients should add to the gas of their calls. */
const VERIFICATION_GAS = 150_000n;
const PRE_VERIFICATION_GAS = 50_000n;
const PAYMASTER_GAS = 50_000n;
/** The factory that clients give for an account that an authorization creates. Source: Eip7702Support.sol. */
const DELEGATE_MARKERS = ['0x7702', '0x7702000000000000000000000000000000000000'];

/**
 * Returns the entry points of a chain. On a chain that forks a real one, only the entry point that wallets use is the
 * sandbox's own.
 */
export const entryPointsOn = ({ state }: EvmParts): readonly string[] =>
  [...entryPoints.keys()]
    .filter((address) => state.upstream === undefined || address === ENTRY_POINT_ADDRESS)
    .map((address) => checksumAddress(address.slice(2)));

export async function sendUserOperation(
  parts: EvmParts,
  bundler: Bundler | undefined,
  [operation, entryPoint]: readonly unknown[],
): Promise<string> {
  const contract = requireEntryPoint(parts, entryPoint);
  if (bundler === undefined) throw new RpcError(SERVER_ERROR, 'the chain has no bundler');
  const outcome = await bundler.broadcast(encodeSponsoredOperation(readOperation(operation, contract)));
  if (outcome.isAccepted) return outcome.hash;
  throw new RpcError(codeOf(outcome.message), outcome.message);
}

function codeOf(message: string): number {
  if (message.startsWith('AA24')) return INVALID_SIGNATURE;
  if (message.startsWith('AA3')) return REJECTED_BY_PAYMASTER;
  return message.startsWith('AA') ? REJECTED_BY_VALIDATION : SERVER_ERROR;
}

export async function estimateUserOperation(
  parts: EvmParts,
  watch: Watch,
  [operation, entryPoint, overrides]: readonly unknown[],
): Promise<object> {
  const contract = requireEntryPoint(parts, entryPoint);
  const whole = readOperation(operation, contract);
  if (isOfContract(parts, whole)) return estimateOfContract(parts, watch, { operation: whole, overrides });
  const { user_operation: read } = whole;
  const calls = decodeAccountCalls(hexToBytes(read.call_data.slice(2)));
  if (calls === undefined) {
    throw new RpcError(REJECTED_BY_VALIDATION, 'AA23 reverted: no call of the account');
  }
  const interpreter = watched(await parts.interpreter(), watch);
  return {
    callGasLimit: quantity(await gasOf(parts, interpreter, { sender: read.sender, calls })),
    verificationGasLimit: quantity(VERIFICATION_GAS),
    preVerificationGas: quantity(PRE_VERIFICATION_GAS),
    ...(read.paymaster === undefined ? {} : paymasterGas()),
  };
}

async function estimateOfContract(
  parts: EvmParts,
  watch: Watch,
  { operation, overrides }: { readonly operation: SponsoredOperation; readonly overrides: unknown },
): Promise<object> {
  const { estimateContractOperation } = await import('../user-operations/contract-accounts.ts');
  const overlay = makeOverlay(overriddenState(parts.state, overrides));
  const interpreter = watched(await parts.interpreter(), watch);
  const estimate = await estimateContractOperation(interpreter, parts, { operation, overlay });
  if ('failure' in estimate) {
    const { failure, data } = estimate;
    if (data === undefined) throw new RpcError(codeOf(failure), failure);
    throw new RpcError(REVERTED_IN_EXECUTION, failure, bytesTo0xHex(data));
  }
  const { paymaster } = operation.user_operation;
  return {
    callGasLimit: quantity(estimate.call),
    verificationGasLimit: quantity(estimate.verification),
    preVerificationGas: quantity(estimate.preVerification),
    ...(paymaster === undefined
      ? {}
      : {
          paymasterVerificationGasLimit: quantity(estimate.paymasterVerification),
          paymasterPostOpGasLimit: quantity(PAYMASTER_GAS),
        }),
  };
}

/**
 * Estimates the gas of several calls. The sum is more than they need together, because each call is estimated as a
 * separate transaction.
 */
async function gasOf(
  { state, blocks }: EvmParts,
  interpreter: Interpreter,
  {
    sender,
    calls,
  }: { readonly sender: string; readonly calls: NonNullable<ReturnType<typeof decodeAccountCalls>> },
): Promise<bigint> {
  let sum = 0n;
  for (const { to, value, data } of calls) {
    const call = { from: sender, to, value, data, delegatedTo: SIMPLE_ACCOUNT_ADDRESS };
    const estimate = await dryRun(interpreter, state, { block: blocks.head(), call });
    // A later call may depend on the effects of an earlier one, so only a single call must succeed.
    if (!estimate.succeeds && calls.length === 1) throw new RpcError(REVERTED, estimate.message);
    sum += estimate.succeeds ? estimate.units : 500_000n;
  }
  return sum;
}

export function userOperationBy(parts: EvmParts, [hash]: readonly unknown[]): object | null {
  const { bundleHash, operation } = find(parts, hash) ?? {};
  if (bundleHash === undefined || operation === undefined) return null;
  const receipt = findReceipt(parts.state, bundleHash);
  return {
    userOperation: viewOf(operation),
    entryPoint: checksumAddress(entryPointOf(operation).slice(2)),
    transactionHash: receipt === undefined ? null : bundleHash,
    blockNumber: receipt === undefined ? null : quantity(receipt.block.number),
    blockHash: receipt === undefined ? null : parts.forks.hashOf(receipt.block.number),
  };
}

export function userOperationReceipt(parts: EvmParts, [hash]: readonly unknown[]): object | null {
  const { bundleHash, operation } = find(parts, hash) ?? {};
  const receipt = bundleHash === undefined ? undefined : findReceipt(parts.state, bundleHash);
  if (operation === undefined || receipt === undefined) return null;
  const { sender, nonce, paymaster } = operation.user_operation;
  const found = findOperation(receipt.logs, hashText(hash));
  const logs = logViews(parts, receipt);
  const of = {
    ...{
      userOpHash: hashText(hash),
      entryPoint: checksumAddress(entryPointOf(operation).slice(2)),
      sender,
      nonce,
    },
    ...(paymaster === undefined ? {} : { paymaster }),
    receipt: receiptView(parts, receipt),
  };
  // Data folders of older versions contain operations without events.
  if (found === undefined) {
    return {
      ...of,
      actualGasCost: quantity(receipt.gasUsed * receipt.gasPrice),
      actualGasUsed: quantity(receipt.gasUsed),
      ...{ success: !receipt.isReverted, logs },
    };
  }
  return {
    ...{ ...of, actualGasCost: quantity(found.gasCost), actualGasUsed: quantity(found.gasUsed) },
    ...{ success: found.succeeds, logs: logs.slice(...found.logs) },
    ...(found.reason === undefined ? {} : { reason: found.reason }),
  };
}

function find(
  { pool }: EvmParts,
  hash: unknown,
): { readonly bundleHash: string; readonly operation: SponsoredOperation } | undefined {
  const bundleHash = bundleOf(hashText(hash));
  const operation = pool.find(bundleHash)?.plan.operation;
  if (operation === undefined) return undefined;
  return { bundleHash, operation: decodeSponsoredOperation(hexToBytes(operation.slice(2))) };
}

/** Returns the fields that the paymaster adds to an operation. It sponsors every operation. Source: ERC-7677. */
export function paymasterData(parts: EvmParts, [, entryPoint, chainId]: readonly unknown[]): object {
  requireEntryPoint(parts, entryPoint);
  const asked = numberOf(chainId, 'chainId');
  if (asked !== parts.state.chainId) {
    throw invalid(`invalid argument: expected the chain id ${parts.state.chainId}, got ${asked}`);
  }
  return { paymaster: checksumAddress(PAYMASTER_ADDRESS.slice(2)), paymasterData: '0x', ...paymasterGas() };
}

export function paymasterStub(parts: EvmParts, params: readonly unknown[]): object {
  return { ...paymasterData(parts, params), sponsor: { name: 'simulated paymaster' } };
}

function paymasterGas(): object {
  return {
    paymasterVerificationGasLimit: quantity(PAYMASTER_GAS),
    paymasterPostOpGasLimit: quantity(0n),
  };
}

function requireEntryPoint(parts: EvmParts, entryPoint: unknown): string {
  const contract = addressOf(entryPoint);
  const known = entryPointsOn(parts);
  if (known.some((address) => address.toLowerCase() === contract)) return contract;
  throw invalid(`unsupported entry point: expected one of ${known.join(', ')}`);
}

/**
 * Reads an operation in the format that clients send.
 *
 * @throws RpcError
 */
function readOperation(value: unknown, contract: string): SponsoredOperation {
  if (!isRecord(value)) throw invalid('invalid argument: expected a user operation');
  const { eip7702Auth, factory, paymaster } = value;
  const number = (name: string): string => quantity(numberOf(value[name] ?? '0x0', name));
  const bytes = (name: string): string => bytesTo0xHex(bytesOf(value[name] ?? '0x'));
  const authorization = isRecord(eip7702Auth) ? readAuthorization(eip7702Auth) : undefined;
  const isMarker = DELEGATE_MARKERS.includes(String(factory).toLowerCase());
  if (isMarker && authorization === undefined) throw invalid('expected `eip7702Auth` with this `factory`');
  return {
    user_operation: {
      ...{ sender: addressOf(value.sender), nonce: number('nonce'), call_data: bytes('callData') },
      ...{ call_gas_limit: number('callGasLimit'), verification_gas_limit: number('verificationGasLimit') },
      ...{ pre_verification_gas: number('preVerificationGas'), max_fee_per_gas: number('maxFeePerGas') },
      max_priority_fee_per_gas: number('maxPriorityFeePerGas'),
      // The entry point hashes the delegate instead of the marker.
      ...(factory == null
        ? {}
        : {
            factory: isMarker ? authorization!.contract : addressOf(factory),
            factory_data: bytes('factoryData'),
          }),
      ...(paymaster == null
        ? {}
        : {
            ...{ paymaster: addressOf(paymaster), paymaster_data: bytes('paymasterData') },
            paymaster_verification_gas_limit: number('paymasterVerificationGasLimit'),
            paymaster_post_op_gas_limit: number('paymasterPostOpGasLimit'),
          }),
      signature: bytes('signature'),
    },
    ...(authorization === undefined ? {} : { authorization }),
    ...(contract === ENTRY_POINT_ADDRESS ? {} : { entry_point: contract }),
  };
}

function readAuthorization(
  value: Readonly<Record<string, unknown>>,
): NonNullable<SponsoredOperation['authorization']> {
  const word = (name: string) => `0x${numberOf(value[name], name).toString(16).padStart(64, '0')}` as const;
  return {
    contract: addressOf(value.address),
    chain_id: quantity(numberOf(value.chainId, 'chainId')),
    nonce: quantity(numberOf(value.nonce, 'nonce')),
    ...{ r: word('r'), s: word('s'), y_parity: numberOf(value.yParity, 'yParity') === 0n ? 0 : 1 },
  };
}

/** Writes an operation in the format that clients expect. */
function viewOf({ user_operation: operation, authorization }: SponsoredOperation): object {
  const fields = Object.entries(operation).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  if (authorization === undefined) return Object.fromEntries(fields);
  const { contract, chain_id: chainId, nonce, r, s, y_parity: yParity } = authorization;
  const eip7702Auth = { address: contract, chainId, nonce, r, s, yParity: quantity(yParity) };
  return { ...Object.fromEntries(fields), eip7702Auth };
}
