import fc from 'fast-check';
import type { ConditionInput } from '../../src/engine/policy/condition-source.ts';
import { callableAbi, calldataFields, messageTypeMaps } from './policy-calldata.ts';

/** Small pools, so that conditions often match requests. */
export const numbers = [
  '0',
  '1',
  '2',
  '99',
  '100',
  '101',
  '9007199254740993',
  `${2n ** 64n - 1n}`,
  `${2n ** 256n - 1n}`,
];
export const decimals = [
  '0',
  '0.5',
  '1.5',
  '1.50',
  '01.5',
  '100',
  '100.000000000000000001',
  '99.999999999999999999',
];
export const evmAddresses = [
  '0x000000000000000000000000000000000000dEaD',
  '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045',
];
export const tronAddresses = [
  ['41a614f803b6fd780986a42c78ec9c7f77e6ded13c', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
  ['413487b63d30b5b2c87fb7ffa8bcfade38eaac1abe', 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8'],
] as const;
export const solanaAddresses = [
  '11111111111111111111111111111111',
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
];
export const xrplAddresses = ['rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B'];
/** X-addresses of the first account, on the main network and on test networks. */
const xAddresses = [
  'XVPcpSm47b1CZkf5AkKM9a84dQHe3m4sBhsrA4XtnBECTAc',
  'TVK3SYvMLZR6rEtLDZh3saYHaqFSeMpn3Dz7EsmQC63VUwh',
];
export const currencies = ['USD', 'EUR', '524C555344000000000000000000000000000000'];
export const suiAddresses = ['0x2', `0x${'0'.repeat(63)}5`, `0x${'Ab'.repeat(32)}`];
export const texts = ['', 'a', 'A', 'pay', 'Pay the bill', 'true', '0xAbC', '100', 'USD'];
const bytesTexts = ['0x', '0xab', '0xDEADBEEF', `0x${'11'.repeat(32)}`];
export const setIds = ['setsetsetsetsetsetset001', 'setsetsetsetsetsetset002', 'setsetsetsetsetsetset404'];
export const totalIds = ['total1', 'total2', 'total404'];

export type Kind = keyof typeof spellings;

const anyCase = (text: string): string[] => [text, text.toLowerCase(), `0x${text.slice(2).toUpperCase()}`];
const spellings = {
  number: numbers.flatMap((text) => [
    text,
    `0x${BigInt(text).toString(16)}`,
    `0x${BigInt(text).toString(16).toUpperCase()}`,
  ]),
  decimal: decimals,
  boolean: ['true', 'false'],
  evm: evmAddresses.flatMap(anyCase),
  tron: tronAddresses.flat(),
  solana: solanaAddresses,
  xrpl: [...xrplAddresses, ...xAddresses],
  currency: [
    ...currencies,
    ...['0000000000000000000000005553440000000000', '524c555344000000000000000000000000000000', 'usd'],
  ],
  xrplType: ['Payment', 'TrustSet', 'OfferCreate', 'AccountSet'],
  sui: suiAddresses,
  account: [...evmAddresses.flatMap(anyCase), ...tronAddresses.flat(), 'a', 'A'],
  bytes: bytesTexts.flatMap(anyCase),
  bytes32: [`0x${'11'.repeat(32)}`, `0x${'Ab'.repeat(32)}`].flatMap(anyCase),
  text: texts,
  name: [
    'Transfer',
    'TransferChecked',
    'Approve',
    'transfer',
    'approve',
    'payMany',
    'deposit',
    'Payment',
    'TrustSet',
    'SplitCoins',
  ],
  command: ['TransferObjects', 'SplitCoins', 'MergeCoins'],
};

const EQUALITY = ['eq', 'neq', 'in', 'in_condition_set'];
const ORDERING = [...EQUALITY, 'gt', 'gte', 'lt', 'lte'];
const operatorsOf = (kind: Kind): string[] => (kind === 'number' || kind === 'decimal' ? ORDERING : EQUALITY);

export interface Field {
  readonly field_source: string;
  readonly field: string;
  readonly kind: Kind;
  readonly operators?: readonly string[];
  readonly extra?: Partial<ConditionInput>;
}

const fieldsOf = (
  field_source: string,
  kinds: Readonly<Record<string, Kind>>,
  operators?: string[],
): Field[] =>
  Object.entries(kinds).map(([field, kind]) => ({
    field_source,
    field,
    kind,
    ...(operators && { operators }),
  }));

const xrplAmount = (name: string): Record<string, Kind> => ({
  [`${name}.drops`]: 'number',
  [`${name}.value`]: 'decimal',
  [`${name}.currency`]: 'currency',
  [`${name}.issuer`]: 'xrpl',
});

/** Members of a Solana instruction that are accounts. */
const members = (instruction: string, names: readonly string[]): Record<string, Kind> =>
  Object.fromEntries(names.map((name) => [`${instruction}.${name}`, 'solana']));

/** Conditions that are true or false for every request, whatever the method. */
const everywhere: readonly Field[] = fieldsOf('system', { current_unix_timestamp: 'number' });
const totals = fieldsOf(
  'reference',
  Object.fromEntries(totalIds.map((id) => [`aggregation.${id}`, 'number' as const])),
  ORDERING.filter((operator) => operator !== 'in_condition_set'),
);
export const ethereumCall: readonly Field[] = [
  ...fieldsOf('ethereum_transaction', { to: 'evm', value: 'number', chain_id: 'number' }),
  ...calldataFields.map(
    ([field, kind]): Field => ({
      field_source: 'ethereum_calldata',
      field,
      kind,
      extra: { abi: callableAbi },
    }),
  ),
];
const tempo: readonly Field[] = [
  ...fieldsOf('tempo_transaction', {
    fee_token: 'evm',
    nonce_key: 'number',
    valid_before: 'number',
    valid_after: 'number',
  }),
  ...fieldsOf('tempo_transaction', { fee_payer_signature: 'boolean' }, ['eq']),
];
const typedData: readonly Field[] = [
  ...fieldsOf('ethereum_typed_data_domain', {
    chainId: 'number',
    chain_id: 'number',
    verifyingContract: 'evm',
    verifying_contract: 'evm',
  }),
  ...messageTypeMaps.flatMap((typed_data) =>
    (
      [
        ['to', 'evm'],
        ['amount', 'number'],
        ['note', 'text'],
        ['final', 'boolean'],
        ['legs.to', 'evm'],
        ['legs.0.amount', 'number'],
        ['legs.amount', 'number'],
      ] as const
    )
      .filter(([field]) => typed_data.primary_type === 'Payment' || /^(to|amount)$/.test(field))
      .map(
        ([field, kind]): Field => ({
          field_source: 'ethereum_typed_data_message',
          field,
          kind,
          extra: { typed_data },
        }),
      ),
  ),
];
const message: readonly Field[] = [
  ...fieldsOf('message', { content: 'text' }, [...EQUALITY, 'contains', 'starts_with', 'ends_with']),
  ...fieldsOf('message', { byte_length: 'number' }, ['eq', 'gt', 'gte', 'lt', 'lte']),
];
const solana: readonly Field[] = [
  ...fieldsOf('solana_program_instruction', { programId: 'solana' }),
  ...fieldsOf('solana_system_program_instruction', {
    instructionName: 'name',
    'Transfer.from': 'solana',
    'Transfer.to': 'solana',
    'Transfer.lamports': 'number',
  }),
  ...fieldsOf('solana_token_program_instruction', {
    instructionName: 'name',
    ...members('Transfer', ['source', 'destination', 'authority']),
    ...members('TransferChecked', ['source', 'destination', 'authority', 'mint']),
    ...members('Burn', ['account', 'mint', 'authority']),
    ...members('MintTo', ['mint', 'account', 'authority']),
    ...members('CloseAccount', ['account', 'destination', 'authority']),
    ...members('InitializeAccount3', ['account', 'mint', 'owner']),
    'Transfer.amount': 'number',
    'TransferChecked.amount': 'number',
    'Burn.amount': 'number',
    'MintTo.amount': 'number',
  }),
];
const tron: readonly Field[] = [
  ...fieldsOf('tron_transaction', {
    'TransferContract.to_address': 'tron',
    'TransferContract.amount': 'number',
    'TriggerSmartContract.contract_address': 'tron',
    'TriggerSmartContract.call_value': 'number',
    'TriggerSmartContract.token_id': 'number',
    'TriggerSmartContract.call_token_value': 'number',
  }),
  ...calldataFields.map(
    ([field, kind]): Field => ({
      field_source: 'tron_trigger_smart_contract_data',
      field,
      kind,
      extra: { abi: callableAbi },
    }),
  ),
];
const xrpl: readonly Field[] = fieldsOf('xrpl_transaction', {
  TransactionType: 'xrplType',
  'Payment.Destination': 'xrpl',
  'Payment.DestinationTag': 'number',
  ...xrplAmount('Payment.Amount'),
  ...xrplAmount('Payment.SendMax'),
  ...xrplAmount('Payment.DeliverMin'),
  ...xrplAmount('OfferCreate.TakerPays'),
  ...xrplAmount('OfferCreate.TakerGets'),
  'OfferCreate.Expiration': 'number',
  'TrustSet.LimitAmount.value': 'decimal',
  'TrustSet.LimitAmount.currency': 'currency',
  'TrustSet.LimitAmount.issuer': 'xrpl',
  'TrustSet.QualityIn': 'number',
  'TrustSet.QualityOut': 'number',
});
const sui: readonly Field[] = [
  ...fieldsOf('sui_transaction_command', { commandName: 'command' }, ['eq', 'in']),
  ...fieldsOf('sui_transfer_objects_command', { recipient: 'sui', amount: 'number' }),
];
const walletAction: readonly Field[] = [
  ...fieldsOf('action_request_body', {
    'source.asset': 'text',
    'source.asset_address': 'account',
    'source.chain': 'text',
    'destination.address': 'account',
    'destination.asset': 'text',
    'destination.chain': 'text',
    vault_id: 'text',
  }),
  ...fieldsOf(
    'action_request_body',
    { 'source.amount': 'decimal', amount: 'decimal', raw_amount: 'decimal' },
    ['eq', 'gt', 'gte', 'lt', 'lte'],
  ),
];

/** The families of requests: a chain, one of its methods, and the fields of its rules. */
export const families = [
  {
    chain: 'ethereum',
    method: 'eth_signTransaction',
    units: 'call',
    fields: [...ethereumCall, ...tempo, ...totals],
  },
  { chain: 'ethereum', method: 'wallet_sendCalls', units: 'call', fields: ethereumCall },
  { chain: 'ethereum', method: 'eth_signTypedData_v4', units: 'typedData', fields: typedData },
  { chain: 'ethereum', method: 'personal_sign', units: 'message', fields: message },
  { chain: 'ethereum', method: 'transfer', units: 'walletAction', fields: walletAction },
  {
    chain: 'ethereum',
    method: 'eth_sign7702Authorization',
    units: 'authorization',
    fields: fieldsOf('ethereum_7702_authorization', { contract: 'evm' }),
  },
  { chain: 'solana', method: 'signTransaction', units: 'solana', fields: solana },
  { chain: 'tron', method: 'tron_signTransaction', units: 'tron', fields: tron },
  { chain: 'xrpl', method: 'xrpl_signTransaction', units: 'xrpl', fields: xrpl },
  { chain: 'sui', method: 'signTransactionBytes', units: 'sui', fields: sui },
] as const satisfies readonly { chain: string; method: string; units: string; fields: readonly Field[] }[];

export type Family = (typeof families)[number];

/** A condition on one of these fields, with a value of its kind. */
export function conditionOn(fields: readonly Field[]): fc.Arbitrary<ConditionInput> {
  // Chooses the source first, so that sources with many fields do not dominate.
  const bySource = Object.values(Object.groupBy(fields, ({ field_source }) => field_source));
  const own = bySource.map((fieldsOfOne = []) => ({
    arbitrary: fc.constantFrom(...fieldsOfOne),
    weight: Math.ceil(6 / bySource.length),
  }));
  return fc
    .oneof(...own, { arbitrary: fc.constantFrom(...everywhere), weight: 1 })
    .chain(({ field_source, field, kind, operators, extra }) =>
      fc
        .constantFrom(...(operators ?? operatorsOf(kind)))
        .chain((operator) =>
          valueFor(operator, kind).map(
            (value) => ({ field_source, field, operator, value, ...extra }) as ConditionInput,
          ),
        ),
    );
}

function valueFor(operator: string, kind: Kind): fc.Arbitrary<string | string[]> {
  if (operator === 'in_condition_set') return fc.constantFrom(...setIds);
  const value = fc.constantFrom(...spellings[kind]);
  return operator === 'in' ? fc.array(value, { minLength: 1, maxLength: 3 }) : value;
}

/** The values of condition sets: the spellings of every kind, mixed. */
export const setItems: fc.Arbitrary<string[]> = fc.array(
  fc.constantFrom(
    ...Object.values(spellings).flat(),
    ...['007', '0x00', '0x0A', '0100', '-0005', '00.500', '100.00', '0x0002'],
    ...tronAddresses
      .flat()
      .map((text) => (text.startsWith('41') ? `41${text.slice(2).toUpperCase()}` : text)),
    '000000000000000000000000524C555344000000'.toLowerCase(),
  ),
  { maxLength: 12 },
);
