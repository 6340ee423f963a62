import { assetsOf } from '../../assets/known-assets.ts';
import { knownChains } from '../../assets/known-chains.ts';
import { type ConditionSource, expectCaseOf, type ResolvedField } from '../condition-source.ts';
import { absent, parseDecimal, present, unreadable, type ValueKind } from '../values.ts';

const FIELDS: Readonly<Record<string, ValueKind>> = {
  'source.asset': 'text',
  'source.asset_address': 'account',
  'source.amount': 'decimal',
  'source.chain': 'text',
  'destination.address': 'account',
  'destination.asset': 'text',
  'destination.chain': 'text',
  vault_id: 'text',
  amount: 'decimal',
  raw_amount: 'decimal',
  developer_fee_percent: 'decimal',
};

const chains = [true, false].flatMap((isTestnet) => knownChains({ isTestnet }));
const expectCaseOfAsset = expectCaseOf(chains.flatMap(assetsOf).map(({ asset }) => asset));
const expectCaseOfChain = expectCaseOf(chains.map(({ name }) => name));
const expectedInstead: Readonly<Record<string, ResolvedField['expectedInstead']>> = {
  'source.asset': expectCaseOfAsset,
  'source.chain': expectCaseOfChain,
  'destination.asset': expectCaseOfAsset,
  'destination.chain': expectCaseOfChain,
};

function lookUp(body: Readonly<Record<string, unknown>>, path: readonly string[]): unknown {
  let value: unknown = body;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** The body of a wallet action. Strings are compared exactly; in an ALLOW rule that includes addresses. */
export const actionRequestBody: ConditionSource = {
  methods: ['transfer', 'earn_deposit', 'earn_withdraw'],
  resolve({ field }, action) {
    const declared = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;
    if (declared === undefined) return undefined;
    const kind = declared === 'account' && action === 'ALLOW' ? 'text' : declared;
    const path = field.split('.');
    return {
      kind,
      expectedInstead: expectedInstead[field],
      ...(kind === 'decimal' && { operators: ['eq', 'gt', 'gte', 'lt', 'lte'] as const }),
      read: ({ requestBody }) => {
        if (requestBody === undefined) return absent('not a wallet action');
        const value = lookUp(requestBody, path);
        if (value === undefined || value === null) return absent(`the body has no ${field}`);
        if (typeof value !== 'string') return unreadable(`${field} is not a string`);
        if (kind === 'decimal' && parseDecimal(value) === undefined)
          return unreadable(`${field} is not a decimal`);
        return present(value);
      },
    };
  },
};
