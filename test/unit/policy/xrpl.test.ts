import { decode, encode } from 'ripple-binary-codec';
import definitions from 'ripple-binary-codec/dist/enums/definitions.json' with { type: 'json' };
import { describe, expect, test } from 'vitest';
import { classicAddressToXAddress } from 'xrpl';
import { triedXrplTypes, xrplEffects } from '../../../src/domain/requests/policy-analysis/lint-xrpl.ts';
import { decodeRpcAction } from '../../../src/engine/actions/decode-action.ts';
import { compilePolicy, compileRule, refuseUnseenValues } from '../../../src/engine/policy/compile.ts';
import type { ConditionInput } from '../../../src/engine/policy/condition-source.ts';
import { xrplTransactionTypes } from '../../../src/engine/policy/conditions/xrpl-transaction.ts';
import { allowsAction, collectLookups } from '../../../src/engine/policy/evaluate.ts';
import { isItem } from '../../../src/engine/policy/operators.ts';
import { decodeXrplTransaction } from '../../../src/engine/signing/xrpl/transaction.ts';

const [owner, friend, evil] = [
  'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh',
  'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B',
  'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
];
const method = 'xrpl_signTransaction';
const inner = (fields: object) => ({
  RawTransaction: { Account: owner, Fee: '0', Flags: 0x40000000, Sequence: 2, SigningPubKey: '', ...fields },
});
const batch = (...transactions: readonly object[]) => ({
  ...{ TransactionType: 'Batch', Account: owner, Fee: '40', Sequence: 1, Flags: 0x00010000 },
  RawTransactions: transactions.map(inner),
});
const payment = (Destination: string, Amount: unknown = '1') => ({
  ...{ TransactionType: 'Payment', Destination, Amount },
});
const actionOf = async (transaction: object) =>
  decodeRpcAction({ method, params: { transaction: encode(transaction as never), encoding: 'hex' } });

type Given = Pick<ConditionInput, 'field' | 'operator' | 'value'>;
const on = (field: string, operator: ConditionInput['operator'], value: string | string[]): Given => ({
  ...{ field, operator, value },
});
const rule = (action: 'ALLOW' | 'DENY', ...conditions: readonly Given[]) => ({
  ...{ id: 'rule', name: 'rule', method, action },
  conditions: conditions.map((each) => ({ field_source: 'xrpl_transaction', ...each })),
});

/** Whether a policy allows the transaction, with these values in its condition set. */
async function isAllowed(
  rules: readonly ReturnType<typeof rule>[],
  transaction: object,
  set: readonly string[] = [],
): Promise<boolean> {
  const policy = compilePolicy({ id: 'policy', chain_type: 'xrpl', rules });
  const action = await actionOf(transaction);
  collectLookups(policy, action, 0);
  return allowsAction(policy, action, {
    nowMs: 0,
    inConditionSet: (_id, candidate) => set.some((item) => isItem(item, candidate)),
    aggregation: () => undefined,
  });
}

/** The refusal of a new rule with the condition; undefined for one that is taken. */
function refusal(field: string, value: string | string[], operator: 'eq' | 'in' = 'eq') {
  try {
    refuseUnseenValues(compileRule(rule('DENY', on(field, operator, value)), 'xrpl'));
    return undefined;
  } catch (error) {
    return (error as { pointer: string }).pointer;
  }
}

describe('a batch', () => {
  const toEvil = rule('DENY', on('Payment.Destination', 'eq', evil));
  const any = rule('ALLOW');

  test.each([
    ['a receiver', [any, toEvil], [payment(friend), payment(evil)]],
    ['an amount', [any, rule('DENY', on('Payment.Amount.drops', 'gt', '10'))], [payment(friend, '11')]],
    [
      'a type',
      [any, rule('DENY', on('TransactionType', 'eq', 'AccountDelete'))],
      [payment(friend), { TransactionType: 'AccountDelete', Destination: evil }],
    ],
    [
      'types that are allowed',
      [rule('ALLOW', on('TransactionType', 'in', ['Payment', 'Batch']))],
      [payment(friend), { TransactionType: 'AccountDelete', Destination: evil }],
    ],
    [
      'the account that is given away',
      [any, rule('DENY', on('TransactionType', 'in', ['SetRegularKey', 'SignerListSet']))],
      [payment(friend), { TransactionType: 'SetRegularKey', RegularKey: evil }],
    ],
  ])('a batch is denied for %s inside it', async (_name, rules, transactions) => {
    expect(await isAllowed(rules, batch(...transactions))).toBe(false);
    expect(await isAllowed(rules, batch({ ...batch(...transactions), Account: owner }))).toBe(false);
  });

  test('needs an ALLOW for itself and for each transaction inside it', async () => {
    const both = [
      rule('ALLOW', on('TransactionType', 'eq', 'Batch')),
      rule('ALLOW', on('Payment.Destination', 'eq', friend)),
    ];
    expect(await isAllowed(both, batch(payment(friend), payment(friend)))).toBe(true);
    expect(await isAllowed(both, batch(payment(friend), payment(evil)))).toBe(false);
    for (const one of both) expect(await isAllowed([one], batch(payment(friend)))).toBe(false);
    const { units } = await actionOf(batch(payment(friend), batch(payment(evil))));
    expect(units.map(({ label }) => label)).toEqual([
      'transaction',
      'transaction, inner transaction 0',
      'transaction, inner transaction 1',
      'transaction, inner transaction 1, inner transaction 0',
    ]);
  });

  test('of the most transactions and signers that the ledger takes is read', () => {
    const key = { SigningPubKey: `02${'11'.repeat(32)}`, TxnSignature: '30'.repeat(72) };
    const Signers = Array.from({ length: 32 }, () => ({ Signer: { Account: evil, ...key } }));
    const BatchSigners = Array.from({ length: 8 }, () => ({
      BatchSigner: { Account: friend, SigningPubKey: '', Signers },
    }));
    const memo = { Memos: [{ Memo: { MemoType: 'AB', MemoData: 'CD' } }] };
    const full = {
      ...batch(...Array.from({ length: 8 }, () => ({ ...payment(friend), ...memo }))),
      BatchSigners,
    };
    expect(decodeXrplTransaction(encode(full as never))).toEqual(decode(encode(full as never)));
  });
});

describe('the spellings of', () => {
  const paysIn = (currency: string) =>
    payment(friend, {
      currency: /^[0-9a-f]{40}$/.test(currency) ? currency.toUpperCase() : currency,
      issuer: evil,
      value: '1',
    });
  const usd = '0000000000000000000000005553440000000000';
  const jkl = '0000000000000000000000004A4B4C0000000000';
  const rlusd = '524C555344000000000000000000000000000000';

  test.each([
    ['USD', ['USD', usd]],
    ['JKL', ['JKL', jkl, jkl.toLowerCase()]],
    [rlusd, [rlusd, rlusd.toLowerCase()]],
    // A code with a character that the codec does not write.
    ['000000000000000000000000412D420000000000', ['000000000000000000000000412D420000000000']],
  ])('the currency %s are one', async (_currency, spellings) => {
    for (const spelled of spellings) {
      const denied = [rule('ALLOW'), rule('DENY', on('Payment.Amount.currency', 'eq', spelled))];
      const inSet = [
        rule('ALLOW'),
        rule('DENY', on('Payment.Amount.currency', 'in_condition_set', 's'.repeat(24))),
      ];
      for (const signed of spellings) {
        expect(await isAllowed(denied, { Account: owner, ...paysIn(signed) })).toBe(false);
        expect(await isAllowed(inSet, { Account: owner, ...paysIn(signed) }, [spelled])).toBe(false);
      }
      expect(await isAllowed(denied, { Account: owner, ...paysIn('EUR') })).toBe(true);
      expect(await isAllowed(inSet, { Account: owner, ...paysIn('usd') }, [spelled])).toBe(true);
      expect(refusal('Payment.Amount.currency', spelled)).toBeUndefined();
    }
  });

  test('currencies that no amount can have are refused', () => {
    for (const bad of ['XRP', 'RLUSD', 'US', '', `${usd}0`, '0x'.padEnd(42, '0'), 'US D'])
      expect(refusal('Payment.Amount.currency', bad)).toBe('/conditions/0/value');
    expect(refusal('TrustSet.LimitAmount.currency', ['USD', 'US'], 'in')).toBe('/conditions/0/value/1');
  });

  test('an address are one, without a tag', async () => {
    for (const isTest of [false, true]) {
      const spelled = classicAddressToXAddress(evil, false, isTest);
      const denied = [rule('ALLOW'), rule('DENY', on('Payment.Destination', 'eq', spelled))];
      const inSet = [
        rule('ALLOW'),
        rule('DENY', on('Payment.Destination', 'in_condition_set', 's'.repeat(24))),
      ];
      expect(await isAllowed(denied, { Account: owner, ...payment(evil) })).toBe(false);
      expect(await isAllowed(denied, { Account: owner, ...payment(friend) })).toBe(true);
      expect(await isAllowed(inSet, { Account: owner, ...payment(evil) }, [spelled])).toBe(false);
      expect(await isAllowed(inSet, { Account: owner, ...payment(friend) }, [spelled])).toBe(true);
      expect(refusal('Payment.Destination', classicAddressToXAddress(evil, 7, isTest))).toBe(
        '/conditions/0/value',
      );
    }
  });

  test('a type of transaction is one', () => {
    expect(refusal('TransactionType', 'AccountDelete')).toBeUndefined();
    for (const bad of ['payment', 'Payment ', 'ttPAYMENT', '0'])
      expect(refusal('TransactionType', bad)).toBeDefined();
  });
});

/** Types that neither spend the account's XRP nor let another account do so. */
const harmless = [
  // They bring in, give back, or change entries of the account itself.
  ...[
    'AMMClawback',
    'AMMDelete',
    'AMMVote',
    'AMMWithdraw',
    'AccountSet',
    'CheckCancel',
    'CheckCash',
    'Clawback',
  ],
  ...['CredentialAccept', 'CredentialCreate', 'CredentialDelete', 'DIDDelete', 'DIDSet', 'DepositPreauth'],
  ...['EscrowCancel', 'EscrowFinish', 'LedgerStateFix', 'LoanBrokerCoverClawback'],
  ...['LoanBrokerDelete', 'LoanBrokerSet', 'LoanDelete', 'LoanManage', 'LoanSet', 'NFTokenBurn'],
  ...['NFTokenCancelOffer', 'NFTokenMint', 'NFTokenModify', 'OfferCancel', 'OracleDelete', 'OracleSet'],
  ...['PermissionedDomainDelete', 'PermissionedDomainSet', 'SponsorshipTransfer', 'TicketCreate', 'TrustSet'],
  ...['VaultClawback', 'VaultCreate', 'VaultDelete', 'VaultSet'],
  ...['XChainAddAccountCreateAttestation', 'XChainAddClaimAttestation', 'XChainCreateBridge'],
  ...['XChainCreateClaimID', 'XChainModifyBridge'],
  // Tokens of their own kind, which no condition reads as an amount.
  ...['ConfidentialMPTClawback', 'ConfidentialMPTConvert', 'ConfidentialMPTConvertBack'],
  ...['ConfidentialMPTMergeInbox', 'ConfidentialMPTSend', 'MPTokenAuthorize', 'MPTokenIssuanceCreate'],
  ...['MPTokenIssuanceDestroy', 'MPTokenIssuanceSet'],
  // Validators send them.
  ...['EnableAmendment', 'SetFee', 'UNLModify'],
];

describe('the types of transactions', () => {
  const known = Object.keys(definitions.TRANSACTION_TYPES).filter((type) => type !== 'Invalid');

  test('that conditions and lint know are those of the ledger', () => {
    expect([...xrplTransactionTypes].sort()).toEqual(known.sort());
    // Payment is what the others are compared with; what is in a Batch is judged by itself.
    expect([...triedXrplTypes, ...harmless, 'Payment', 'Batch'].sort()).toEqual(known.sort());
  });

  test('that lint tries have the fields that the ledger requires', () => {
    const formats: Readonly<Record<string, readonly { name: string; optionality: number }[]>> =
      definitions.TRANSACTION_FORMATS;
    const common = new Set(formats.common?.map(({ name }) => name));
    for (const { others } of xrplEffects({ conditions: [], sender: undefined })) {
      const requests = others
        .flatMap((other) => other.requests)
        .filter(({ operation }) => operation === 'walletRpc');
      expect(requests.length).toBeGreaterThan(20);
      for (const { request } of requests) {
        const { transaction } = request.params as { transaction: string };
        const decoded = decodeXrplTransaction(transaction);
        const own = Object.keys(decoded).filter((name) => !common.has(name));
        const format = formats[String(decoded.TransactionType)] ?? [];
        expect(format.map(({ name }) => name)).toEqual(expect.arrayContaining(own));
        expect(own).toEqual(
          expect.arrayContaining(
            format.filter(({ optionality }) => optionality === 0).map(({ name }) => name),
          ),
        );
      }
    }
  });
});
