import type { WalletRpcRequest } from '../../generated/schemas.ts';
import { bytesToHex, hexToBytes } from '../crypto/encoding.ts';
import { loadOnce } from '../load-once.ts';
import type { ActionUnit, PolicyAction } from '../policy/action.ts';
import {
  decodeEthereumTransaction,
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../signing/ethereum/any-transaction.ts';
import { type BatchCall, decodeBatch, decodeCanonicalBatch } from '../signing/ethereum/batch-executor.ts';
import type { EthereumTransactionView } from '../signing/ethereum/transaction.ts';
import { decodeAccountCalls } from '../signing/ethereum/user-operation-calls.ts';
import { parseEvmAddress, parseHexBytes, parseMessage, parseQuantity } from '../signing/fields.ts';
import type { XrplTransaction } from '../signing/xrpl/transaction.ts';

type RpcMethod = WalletRpcRequest['method'];
type Params<Method extends RpcMethod> = Extract<
  WalletRpcRequest,
  { method: Method; params: unknown }
>['params'];
type Decoder<Input> = (params: Input) => Promise<readonly ActionUnit[]>;
type Decoders = {
  readonly [Method in RpcMethod]?: Decoder<Params<Method>>;
};

const CHAIN_ID_BITS = 256;
const LARGE_XRPL_CHARACTERS = 8_000;

// Decoders for less common requests are loaded on first use.
const loaders = {
  userOperationCalls: loadOnce(() => import('../signing/ethereum/user-operation-calls.ts')),
  solanaUnits: loadOnce(() => import('./decode-solana-units.ts')),
  tronRawData: loadOnce(() => import('../signing/tron/raw-data.ts')),
  rawBytes: loadOnce(() => import('./decode-raw-bytes.ts')),
  xrplTransaction: loadOnce(() => import('../signing/xrpl/transaction.ts')),
};

/**
 * Decodes an RPC request into the action that policies evaluate. The action is read from the bytes to be signed and has
 * the method name that rules use.
 *
 * A method without a decoder gets one unreadable unit: only rules for `*` apply to it, and conditions on its content
 * are unknown. So a request for a bare hash cannot bypass a DENY.
 *
 * CHOICE: a Solana message that is a transaction is evaluated as `signTransaction`, because its signature can move
 * money.
 *
 * @throws SigningInputError for params that the signing method would reject too.
 */
export async function decodeRpcAction(request: WalletRpcRequest): Promise<PolicyAction> {
  const { method } = request;
  if (request.method === 'signMessage') return await decodeSolanaMessage(request.params);
  if (!Object.hasOwn(decoders, method) || !('params' in request)) {
    return { method, units: [{ label: method, undecodable: 'what it signs is not decoded' }] };
  }
  const decode = decoders[method] as Decoder<unknown>;
  return { method, units: await decode(request.params) };
}

const decoders: Decoders = {
  async personal_sign({ message, encoding }) {
    return [{ label: 'message', messageBytes: parseMessage(message, encoding, '/message') }];
  },
  async eth_signTypedData_v4({ typed_data: { domain, types, primary_type: primaryType, message } }) {
    return [{ label: 'typed data', typedData: { domain, types, primaryType, message } }];
  },
  async eth_signTransaction({ transaction }) {
    const prepared = await prepareEthereumTransaction(transaction as EthereumTransaction);
    return transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
  },
  async eth_sign7702Authorization({ contract }) {
    return [
      { label: 'authorization', authorization7702: { contract: parseEvmAddress(contract, '/contract') } },
    ];
  },
  async eth_signUserOperation({ chain_id: chainId, user_operation: operation }) {
    const { decodeUserOperationCalls } = await loaders.userOperationCalls();
    const calls = decodeUserOperationCalls(parseHexBytes(operation.call_data, '/user_operation/call_data'));
    if (calls === undefined) {
      return [{ label: 'user operation', undecodable: 'the call data has no known encoding of the account' }];
    }
    const chain = parseQuantity(chainId, '/chain_id', CHAIN_ID_BITS);
    return calls.map((call, index) => ({
      label: `call ${index}`,
      ethereumCall: { ...call, chainId: chain },
    }));
  },
  async signTransaction({ transaction }) {
    const { decodeSolanaUnits } = await loaders.solanaUnits();
    return decodeSolanaUnits(transaction);
  },
  async tron_signTransaction({ raw_data: rawData }) {
    const { encodeTronRawData } = await loaders.tronRawData();
    const { decodeTronUnits } = await loaders.rawBytes();
    return (
      decodeTronUnits(encodeTronRawData(rawData as Parameters<typeof encodeTronRawData>[0])) ?? [
        { label: 'transaction', undecodable: 'the transaction is of another kind' },
      ]
    );
  },
  async xrpl_signTransaction({ transaction }) {
    const { decodeXrplTransaction } = await loaders.xrplTransaction();
    const units = xrplUnits('transaction', decodeXrplTransaction(transaction));
    // The longest transactions take 30 ms to read and another 30 ms to sign. Let other work run in between.
    if (transaction.length > LARGE_XRPL_CHARACTERS) await new Promise((resolve) => setImmediate(resolve));
    return units;
  },
};

/**
 * Returns the units of an XRP Ledger transaction and of all transactions nested in it, because the signature of a
 * Batch also authorizes those. Source: XLS-56.
 */
function xrplUnits(label: string, transaction: XrplTransaction): readonly ActionUnit[] {
  const { RawTransactions: inner } = transaction;
  const within = Array.isArray(inner) ? inner : [];
  return [
    { label, xrplTransaction: transaction },
    ...within.flatMap((item: { readonly RawTransaction?: XrplTransaction }, index) =>
      // INVARIANT: the codec requires `RawTransaction` to be an object.
      xrplUnits(`${label}, inner transaction ${index}`, item.RawTransaction ?? {}),
    ),
  ];
}

async function decodeSolanaMessage({ message }: Params<'signMessage'>): Promise<PolicyAction> {
  const { decodeSolanaMessageUnits } = await loaders.solanaUnits();
  const messageBytes = Buffer.from(message, 'base64');
  const units = decodeSolanaMessageUnits(messageBytes);
  return units === undefined
    ? { method: 'signMessage', units: [{ label: 'message', messageBytes }] }
    : { method: 'signTransaction', units };
}

/**
 * Returns the units of an EVM transaction, one per call. Fields that a batch states only once are repeated in each
 * unit.
 */
export function transactionUnits(view: EthereumTransactionView): readonly ActionUnit[] {
  const chainId = view.chainId === undefined ? undefined : BigInt(view.chainId);
  const pricePerGas = view.gasPrice ?? view.maxFeePerGas ?? 0n;
  const most = view.gasLimit * pricePerGas;
  // A transaction that is decoded before the server has filled in its fee has no fee yet.
  const fee = most === 0n ? {} : { fee: { gasLimit: view.gasLimit, pricePerGas, most } };
  return view.calls.map((call, index) => ({
    label: view.calls.length === 1 ? 'transaction' : `call ${index}`,
    ethereumCall: { to: call.to, value: call.value, chainId, data: hexToBytes(call.data.slice(2)) },
    ...fee,
    ...(view.tempo === undefined
      ? {}
      : {
          tempo: {
            feeToken: view.tempo.feeToken,
            hasFeePayerSignature: view.tempo.isFeePayerSigned,
            nonceKey: view.tempo.nonceKey,
            validBefore: asBigInt(view.tempo.validBefore),
            validAfter: asBigInt(view.tempo.validAfter),
          },
        }),
  }));
}

function asBigInt(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(value);
}

export function exportAction(isPhrase: boolean): PolicyAction {
  return { method: isPhrase ? 'exportSeedPhrase' : 'exportPrivateKey', units: [{ label: 'export' }] };
}

/**
 * Returns the units of a batch that an account runs through a transaction to itself, or undefined for other calldata. A
 * call to address 0 is a call to the account itself (ERC-7821).
 */
export function batchUnits(
  data: Uint8Array,
  chainId: bigint,
  account: string,
): readonly ActionUnit[] | undefined {
  return decodeBatch(data)
    ?.map((call) => toAccount(call, account))
    .map(unitOf(chainId));
}

/** Resolves the target of a call in an ERC-7821 batch, where address 0 stands for the account itself. */
function toAccount(call: BatchCall, account: string): BatchCall {
  return /^0x0{40}$/.test(call.to) ? { ...call, to: account } : call;
}

/** Returns the units of the call data (0x hex) of a sponsored user operation, or undefined for other call data. */
export function operationUnits(callData: string, chainId: bigint): readonly ActionUnit[] | undefined {
  const units = decodeAccountCalls(hexToBytes(callData.slice(2)))?.map(unitOf(chainId));
  return units?.length === 1 ? [{ ...units[0]!, label: 'transaction' }] : units;
}

function unitOf(chainId: bigint) {
  return (call: BatchCall, index: number): ActionUnit => ({
    label: `call ${index}`,
    ethereumCall: { ...call, chainId },
  });
}

const SELECTOR_BYTES = 4;

/**
 * Removes from the units the suffix that the server appends to the calldata of the last call.
 * @param suffix 0x hex
 *
 * CHOICE: functions ignore bytes after their arguments, so rules evaluate the call without the suffix. A suffix that
 * determines the function, or that is part of the code of a new contract, stays part of the call.
 */
export function withoutSuffix(units: readonly ActionUnit[], suffix = '0x'): readonly ActionUnit[] {
  const last = units.at(-1);
  const call = last?.ethereumCall;
  const kept = (call?.data.length ?? 0) - (suffix.length - 2) / 2;
  if (last === undefined || call?.to === undefined || kept < SELECTOR_BYTES) return units;
  if (bytesToHex(call.data.subarray(kept)) !== suffix.slice(2).toLowerCase()) return units;
  return [...units.slice(0, -1), { ...last, ethereumCall: { ...call, data: call.data.subarray(0, kept) } }];
}

const MAX_DEPTH = 8;

/**
 * Replaces every call of an account to itself with the calls that it requests. Each of these needs its own permission;
 * without this, a self-call could bypass the rules on the calls inside it. Any other self-call is unreadable, because
 * its effect depends on the account's code.
 *
 * @param address the account's address; without it, no call is recognized as a self-call.
 */
export function unfoldBatches(action: PolicyAction, address: string | undefined): PolicyAction {
  if (address === undefined) return action;
  return { ...action, units: action.units.flatMap((unit) => unfold(unit, address.toLowerCase(), MAX_DEPTH)) };
}

/** Returns the account that makes a request's calls: the sender of a user operation, else the wallet itself. */
export function callingAccount(request: WalletRpcRequest, address: string | undefined): string | undefined {
  return request.method === 'eth_signUserOperation' ? request.params.user_operation.sender : address;
}

function unfold(unit: ActionUnit, address: string, depth: number): readonly ActionUnit[] {
  const call = unit.ethereumCall;
  if (call?.to?.toLowerCase() !== address || call.data.length === 0) return [unit];
  const calls = depth === 0 ? undefined : callsIn(call.data, address);
  if (calls === undefined)
    return [{ ...unit, undecodable: 'a call of the account to itself, of unknown form' }];
  const inner = calls.flatMap((own, index) =>
    unfold(
      { ...unit, label: `${unit.label}, call ${index}`, ethereumCall: { ...call, ...own } },
      address,
      depth - 1,
    ),
  );
  return [unit, ...inner];
}

/**
 * Returns the calls that calldata requests from an account. Reads only the canonical encodings of the account
 * contracts that we know: the batch executor and the user-operation accounts.
 */
function callsIn(data: Uint8Array, address: string): readonly BatchCall[] | undefined {
  const batch = decodeCanonicalBatch(data);
  if (batch === undefined) return decodeAccountCalls(data);
  return batch.map((call) => toAccount(call, address));
}
