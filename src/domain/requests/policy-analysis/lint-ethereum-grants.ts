import { bytesTo0xHex } from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { contractAbi } from '../../../engine/signing/ethereum/contract-calls.ts';
import {
  callRequests,
  type EthereumCall,
  isEvmAddress,
  STRANGER,
  type TokenFunction,
  tokenFunctions,
} from './lint-ethereum-calls.ts';
import {
  boundaryNumbers,
  distinct,
  type Effect,
  namedValues,
  rpc,
  type TriedRequest,
} from './lint-requests.ts';

/** Structs of typed data by name. Each value has the form `name:type name:type`. */
type Structs = Readonly<Record<string, string>>;

interface Grant {
  /** The structs of the message. The first one is the primary type. */
  readonly structs: Structs;
  readonly message: Readonly<Record<string, unknown>>;
  /** The members of the domain in addition to the chain. */
  readonly domain: Readonly<Record<string, string>>;
}

const LATER = '4102444800';
const PERMIT2 = '0x000000000022d473030f116ddee9f6b43ac78ba3';
const SEAPORT = '0x0000000000000068f116a894984e2db1123eb395';
const SOME_CONTRACT = '0x0000000000000000000000000000000000c0ffee';
const MULTICALL3 = '0xca11bde05977b3631167028862be2a173976ca11';
const NO_BYTES = `0x${'00'.repeat(32)}`;
const ZERO_ADDRESS = `0x${'00'.repeat(20)}`;

const multicall3 = contractAbi([
  'function aggregate3Value((address target, bool allowFailure, uint256 value, bytes callData)[] calls) payable',
]);

/** Chains that accept typed data as transactions. Source: viem, the chains with the serializers of ZKsync. */
const ZKSYNC_CHAINS: readonly number[] = [324, 300, 232, 2741, 50104];

const ofContract = (verifyingContract: string) => ({ name: 'Example', version: '1', verifyingContract });

/** Returns a payment as a transaction of type 113. Source: era-contracts, TransactionHelper.sol. */
function zksyncPayment({ to, value, chainId, sender }: EthereumCall): readonly Grant[] {
  if (!ZKSYNC_CHAINS.includes(chainId)) return [];
  const numbers = { txType: '113', gasLimit: '1000000', gasPerPubdataByteLimit: '50000' };
  const fees = { maxFeePerGas: '1000000000', maxPriorityFeePerGas: '0', paymaster: '0', nonce: '0' };
  return [
    {
      structs: {
        Transaction:
          'txType:uint256 from:uint256 to:uint256 gasLimit:uint256 gasPerPubdataByteLimit:uint256 maxFeePerGas:uint256 maxPriorityFeePerGas:uint256 paymaster:uint256 nonce:uint256 value:uint256 data:bytes factoryDeps:bytes32[] paymasterInput:bytes',
      },
      message: {
        ...{
          ...numbers,
          ...fees,
          from: String(BigInt(sender)),
          to: String(BigInt(to)),
          value: String(value),
        },
        ...{ data: '0x', factoryDeps: [], paymasterInput: '0x' },
      },
      domain: { name: 'zkSync', version: '2' },
    },
  ];
}

/**
 * Returns typed data for Hyperliquid that moves the wallet's funds there, or lets another key trade for the wallet.
 * Source: signing.py of Hyperliquid's SDK.
 */
function hyperliquidActions({ to: destination, chainId }: EthereumCall): readonly TriedRequest[] {
  const own = { version: '1', verifyingContract: ZERO_ADDRESS };
  const domain = { name: 'HyperliquidSignTransaction', ...own };
  const moved = 'hyperliquidChain:string destination:string amount:string time:uint64';
  const move = { hyperliquidChain: 'Mainnet', destination, amount: '1', time: '0' };
  const agent = { hyperliquidChain: 'Mainnet', agentAddress: destination, agentName: '', nonce: '0' };
  const trade = {
    structs: { Agent: 'source:string connectionId:bytes32' },
    message: { source: 'a', connectionId: `0x${'11'.repeat(32)}` },
    domain: { name: 'Exchange', ...own },
  };
  return [
    ...[
      { structs: { 'HyperliquidTransaction:UsdSend': moved }, message: move, domain },
      { structs: { 'HyperliquidTransaction:Withdraw': moved }, message: move, domain },
      {
        structs: {
          'HyperliquidTransaction:ApproveAgent':
            'hyperliquidChain:string agentAddress:address agentName:string nonce:uint64',
        },
        message: agent,
        domain,
      },
    ].map((grant) => typedRequest(grant, chainId)),
    typedRequest(trade, 1337),
  ];
}

/**
 * Returns requests that pay a receiver without a call to the receiver: through a smart contract that forwards the
 * payment, from a Safe that the wallet owns, as a ZKsync transaction in typed data, or by giving another smart contract
 * control of the account. Sources: Multicall3; Safe 1.3 to 1.5; EIP-7702.
 */
export function paymentGrants(call: EthereumCall): readonly { of?: string; requests: TriedRequest[] }[] {
  const { to, value, chainId, sender } = call;
  const data = multicall3.encodeCall('aggregate3Value', [[to, false, value, '0x']]);
  const through = { to: MULTICALL3, value, chainId, sender, data: bytesTo0xHex(data) };
  const marks = [is('ethereum_transaction', 'to', 'eq', MULTICALL3)];
  const passedOn = value === 0n ? [] : callRequests(through, { marks });
  const zeros = { operation: 0, safeTxGas: '0', baseGas: '0', gasPrice: '0', nonce: '0' };
  const safe: Grant = {
    structs: {
      SafeTx: `to:address value:uint256 data:bytes operation:uint8 safeTxGas:uint256 baseGas:uint256 gasPrice:uint256 gasToken:address refundReceiver:address nonce:uint256`,
    },
    message: {
      ...{ to, value: String(value), data: '0x', ...zeros },
      ...{ gasToken: ZERO_ADDRESS, refundReceiver: ZERO_ADDRESS },
    },
    domain: ofContract(SOME_CONTRACT),
  };
  const typed = [safe, ...zksyncPayment(call)].map((grant) => typedRequest(grant, chainId));
  const delegation = rpc('eth_sign7702Authorization', {
    params: { contract: STRANGER, chain_id: chainId, nonce: 0 },
  });
  return [
    ...passedOn.map((request) => ({ of: request.method, requests: [request] })),
    { requests: [...typed, delegation] },
  ];
}

interface TokenTerms {
  readonly owner: string;
  readonly to: string;
  readonly amount: bigint;
}

/**
 * Returns typed data that lets another account take tokens. Sources: ERC-2612; DAI; ERC-3009; Permit2; Seaport 1.6,
 * whose bulk orders are trees; orders of which only a Merkle root is signed.
 */
function tokenGrants(
  { to: token, chainId }: EthereumCall,
  { owner, to: spender, amount }: TokenTerms,
): readonly TriedRequest[] {
  const value = String(amount);
  const permitted = { token, amount: value };
  const details = { token, amount: String(amount % 2n ** 160n), expiration: 4102444800, nonce: 0 };
  const authorized = {
    ...{ from: owner, to: spender, value, validAfter: '0', validBefore: LATER, nonce: NO_BYTES },
  };
  const authorization =
    'from:address to:address value:uint256 validAfter:uint256 validBefore:uint256 nonce:bytes32';
  const detailed = { PermitDetails: 'token:address amount:uint160 expiration:uint48 nonce:uint48' };
  const permissions = { TokenPermissions: 'token:address amount:uint256' };
  const ofToken: readonly Omit<Grant, 'domain'>[] = [
    {
      structs: { Permit: 'owner:address spender:address value:uint256 nonce:uint256 deadline:uint256' },
      message: { owner, spender, value, nonce: '0', deadline: LATER },
    },
    {
      structs: { Permit: 'holder:address spender:address nonce:uint256 expiry:uint256 allowed:bool' },
      message: { holder: owner, spender, nonce: '0', expiry: LATER, allowed: true },
    },
    { structs: { TransferWithAuthorization: authorization }, message: authorized },
    { structs: { ReceiveWithAuthorization: authorization }, message: authorized },
  ];
  const ofPermit2: readonly Omit<Grant, 'domain'>[] = [
    {
      structs: { PermitSingle: 'details:PermitDetails spender:address sigDeadline:uint256', ...detailed },
      message: { details, spender, sigDeadline: LATER },
    },
    {
      structs: { PermitBatch: 'details:PermitDetails[] spender:address sigDeadline:uint256', ...detailed },
      message: { details: [details], spender, sigDeadline: LATER },
    },
    {
      structs: {
        PermitTransferFrom: 'permitted:TokenPermissions spender:address nonce:uint256 deadline:uint256',
        ...permissions,
      },
      message: { permitted, spender, nonce: '0', deadline: LATER },
    },
    {
      structs: {
        PermitBatchTransferFrom:
          'permitted:TokenPermissions[] spender:address nonce:uint256 deadline:uint256',
        ...permissions,
      },
      message: { permitted: [permitted], spender, nonce: '0', deadline: LATER },
    },
  ];
  const grants: readonly Grant[] = [
    ...ofToken.map((grant) => ({ ...grant, domain: ofContract(token) })),
    ...ofPermit2.map((grant) => ({ ...grant, domain: ofContract(PERMIT2) })),
    ...orders({ token, owner, value }),
  ];
  return grants.map((grant) => ({ ...typedRequest(grant, chainId), token }));
}

const ORDER = {
  OrderComponents:
    'offerer:address zone:address offer:OfferItem[] consideration:ConsiderationItem[] orderType:uint8 startTime:uint256 endTime:uint256 zoneHash:bytes32 salt:uint256 conduitKey:bytes32 counter:uint256',
  OfferItem:
    'itemType:uint8 token:address identifierOrCriteria:uint256 startAmount:uint256 endAmount:uint256',
  ConsiderationItem:
    'itemType:uint8 token:address identifierOrCriteria:uint256 startAmount:uint256 endAmount:uint256 recipient:address',
};

/**
 * Returns orders that offer the tokens for nothing: a single order, an order in a tree, and an order as a Merkle root.
 */
function orders({ token, owner, value }: Readonly<Record<'token' | 'owner' | 'value', string>>): Grant[] {
  const item = { itemType: 1, token, identifierOrCriteria: '0', startAmount: value, endAmount: value };
  const order = {
    ...{ offerer: owner, zone: ZERO_ADDRESS, offer: [item], consideration: [], orderType: 0 },
    ...{ startTime: '0', endTime: LATER, zoneHash: NO_BYTES, salt: '0', conduitKey: NO_BYTES, counter: '0' },
  };
  return [
    { structs: ORDER, message: order, domain: ofContract(SEAPORT) },
    {
      structs: { BulkOrder: 'tree:OrderComponents[2]', ...ORDER },
      message: { tree: [order, order] },
      domain: ofContract(SEAPORT),
    },
    {
      structs: { Root: 'root:bytes32' },
      message: { root: `0x${'11'.repeat(32)}` },
      domain: ofContract(SOME_CONTRACT),
    },
  ];
}

function is(
  field_source: ConditionInput['field_source'],
  field: string,
  operator: ConditionInput['operator'],
  value: string,
): ConditionInput {
  return { field_source, field, operator, value };
}

/** The path to a number in each kind of message, by primary type. Messages that consist of hashes have none. */
const markedFields: Readonly<Record<string, string>> = {
  SafeTx: 'operation',
  Permit: 'nonce',
  TransferWithAuthorization: 'value',
  ReceiveWithAuthorization: 'value',
  PermitSingle: 'sigDeadline',
  PermitBatch: 'sigDeadline',
  PermitTransferFrom: 'nonce',
  PermitBatchTransferFrom: 'nonce',
  OrderComponents: 'orderType',
  BulkOrder: 'tree.orderType',
  Transaction: 'value',
  'HyperliquidTransaction:UsdSend': 'time',
  'HyperliquidTransaction:Withdraw': 'time',
  'HyperliquidTransaction:ApproveAgent': 'nonce',
};
const markedHashes: Readonly<Record<string, string>> = { Root: 'root', Agent: 'connectionId' };

function typedRequest({ structs, message, domain }: Grant, chainId: number): TriedRequest {
  const [primary_type = ''] = Object.keys(structs);
  const types = Object.fromEntries(
    Object.entries(structs).map(([name, members]) => [
      name,
      members.split(' ').map((member) => {
        const [own = '', type = ''] = member.split(':');
        return { name: own, type };
      }),
    ]),
  );
  const field = markedFields[primary_type];
  const condition =
    field === undefined
      ? is('ethereum_typed_data_message', markedHashes[primary_type]!, 'neq', NO_BYTES)
      : is('ethereum_typed_data_message', field, 'gte', '0');
  return rpc(
    'eth_signTypedData_v4',
    { params: { typed_data: { domain: { ...domain, chainId }, types, primary_type, message } } },
    { marks: [{ ...condition, typed_data: { types, primary_type } }] },
  );
}

/** A token that no rule names. */
const SOME_TOKEN = '0x0000000000000000000000000000000000c0ffee';
/** The maximum number of values tried per field. The product of these numbers bounds the work. */
const MAX_TRIED = { tokens: 2, receivers: 3, amounts: 3 };

interface TokenSubject {
  readonly conditions: readonly ConditionInput[];
  readonly chainId: number;
  readonly receivers: readonly string[];
  readonly sender: string;
}

const isCalldata = ({ field_source: source }: ConditionInput): boolean => source === 'ethereum_calldata';

/** Yields transfers of tokens with calldata that conditions name, and other requests that give the same tokens away. */
export function* tokenEffects({ conditions, chainId, receivers, sender }: TokenSubject): Generator<Effect> {
  if (!conditions.some(isCalldata)) return;
  const named = namedValues(conditions, isCalldata);
  const contracts = namedValues(conditions, ({ field }) => field === 'to').filter(isEvmAddress);
  const to = distinct([...receivers, ...named.filter(isEvmAddress)], MAX_TRIED.receivers);
  // Addresses are hex as well, but they are not amounts.
  const amounts = boundaryNumbers(
    named.filter((value) => !isEvmAddress(value)),
    2n ** 256n,
  ).slice(0, MAX_TRIED.amounts);
  for (const token of distinct([SOME_TOKEN, ...contracts], MAX_TRIED.tokens)) {
    for (const receiver of to) {
      for (const amount of amounts) {
        yield* effectsOf({ to: token, value: 0n, chainId, sender }, { receiver, amount });
      }
    }
  }
}

function* effectsOf(
  call: EthereumCall,
  { receiver, amount }: { readonly receiver: string; readonly amount: bigint },
): Generator<Effect> {
  const terms = { owner: call.sender.toLowerCase(), to: receiver.toLowerCase(), amount };
  const functions = tokenFunctions({ ...terms, source: 'ethereum_calldata' });
  const byFunction = functions.map((each) => requestsOf(call, each));
  const grants = tokenGrants(call, terms);
  for (const [index, calls] of byFunction.slice(0, 2).entries()) {
    const siblings = byFunction.filter((_, other) => other !== index);
    yield {
      calls,
      others: [
        ...calls.map(({ method }, position) => ({
          kind: 'sibling_call' as const,
          of: method,
          requests: siblings.map((requests) => requests[position]!),
        })),
        { kind: 'sibling_call', requests: grants },
      ],
    };
  }
}

function requestsOf(call: EthereumCall, { data, marks }: TokenFunction): readonly TriedRequest[] {
  return callRequests({ ...call, data }, { marks, token: call.to });
}

/** Returns requests that move tokens, or funds on Hyperliquid, in place of a payment. None of them has a value. */
export function tokenTransfers({ to, chainId, sender }: EthereumCall) {
  const [transfer] = tokenFunctions({
    ...{ owner: sender.toLowerCase(), to: to.toLowerCase(), amount: 1n },
    source: 'ethereum_calldata',
  });
  const requests = requestsOf({ to: SOME_TOKEN, value: 0n, chainId, sender }, transfer!);
  const transfers = requests.map((request) => ({ of: request.method, requests: [request] }));
  const elsewhere = { requests: hyperliquidActions({ to, value: 0n, chainId, sender }) };
  return [...transfers, elsewhere].map((way) => ({ kind: 'token_transfer' as const, ...way }));
}
