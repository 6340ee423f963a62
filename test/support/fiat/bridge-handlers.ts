import type { KYCSubmitData } from '../../../src/generated/schemas.ts';
import type {
  BankAccountOrder,
  CustomerKind,
  CustomerSnapshot,
  FiatAsset,
  FiatDepositReport,
  FiatPayout,
  FiatProvider,
  FiatRefusal,
  VirtualAccount,
} from '../../../src/ports/fiat.ts';

export interface BridgeReply {
  readonly status: number;
  readonly body: unknown;
}

export interface HandlerInput {
  readonly ids: readonly string[];
  readonly query: URLSearchParams;
  // biome-ignore lint/suspicious/noExplicitAny: bodies were validated against the document.
  readonly body: any;
  readonly key: string | undefined;
}

type Handler = (input: HandlerInput, success: number) => Promise<BridgeReply>;

interface HandlerWorld {
  readonly bank: FiatProvider;
  readonly clock: { now(): number };
  /** The kind of each customer. */
  readonly kinds: Map<string, CustomerKind>;
}

/** USDC on the test network on which the local provider pays. */
export const testUsdc: FiatAsset = {
  caip2: 'eip155:84532',
  chain: 'base_sepolia',
  asset: 'usdc',
  tokenAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  decimals: 6,
};

/** The operations of the document, implemented by a simulated bank. */
export function bridgeHandlers(world: HandlerWorld): Readonly<Record<string, Handler>> {
  return {
    ...customerHandlers(world),
    ...accountHandlers(world),
    ...depositHandlers(world),
    ...transferHandlers(world),
  };
}

/** An error response of the provider. `key` names the faulty member. */
export function refused(status: number, code: string, key?: unknown): BridgeReply {
  // The messages of the real provider repeat submitted data.
  const message = 'the value `DE89370400440532013000` of `Alice Example` is not accepted';
  const source = key === undefined ? {} : { source: { location: 'body', key } };
  return { status, body: { code, message, ...source } };
}

const reply = (status: number, body: unknown): BridgeReply => ({ status, body });
const notFound = (): BridgeReply => refused(404, 'not_found');

function customerHandlers({ bank, kinds, clock }: HandlerWorld): Record<string, Handler> {
  const view = (snapshot: CustomerSnapshot) => customerView(snapshot, kinds.get(snapshot.id)!, clock.now());
  const answerWith = (status: number, said: CustomerSnapshot | FiatRefusal) =>
    'fault' in said
      ? refused(400, 'invalid_parameters', {
          [said.pointer?.slice(1).replaceAll('/', '.') ?? 'type']: 'not accepted',
        })
      : reply(status, view(said));
  const linkWith = (link: string | undefined) =>
    link === undefined ? notFound() : reply(200, { url: link });
  return {
    async 'POST /customers'({ body, key }, status) {
      const kind = body.type === 'individual' ? 'person' : 'business';
      const said = await bank.openCustomer({
        id: undefined,
        kind,
        reference: key!,
        email: 'none@example.com',
      });
      if (!('fault' in said)) kinds.set(said.id, kind);
      return answerWith(status, said);
    },
    async 'PUT /customers/{customerID}'({ ids: [id = ''], body }, status) {
      const kind = kinds.get(id);
      if (kind === undefined) return notFound();
      const { signed_agreement_id: clientAgreementId, endorsements, type: _, email, ...rest } = body;
      const terms = { id, kind, reference: '', clientAgreementId, endorsements };
      const isContact = Object.keys(rest).every((name) => name === 'business_legal_name');
      if (isContact) return answerWith(status, await bank.openCustomer({ ...terms, email }));
      const { birth_date: date_of_birth, nationality, ...data } = rest;
      const submitted = { ...data, date_of_birth, email } as KYCSubmitData;
      return answerWith(
        status,
        await bank.submit({ ...terms, kind, data: submitted } as Parameters<FiatProvider['submit']>[0]),
      );
    },
    async 'GET /customers/{customerID}'({ ids: [id = ''] }) {
      const found = kinds.has(id) ? await bank.customer(id) : undefined;
      return found === undefined ? notFound() : reply(200, view(found));
    },
    'GET /customers/{customerID}/kyc_link': async ({ ids: [id = ''], query }) =>
      linkWith(await bank.verificationLink(id, { redirectUri: query.get('redirect_uri') ?? undefined })),
    'GET /customers/{customerID}/tos_acceptance_link': async ({ ids: [id = ''] }) =>
      linkWith(await bank.termsLink(id)),
  };
}

function customerView(snapshot: CustomerSnapshot, kind: CustomerKind, nowMs: number) {
  const { id, status, terms, verification, capabilities, endorsements } = snapshot;
  const at = new Date(nowMs).toISOString();
  return {
    ...{ id, status, capabilities, type: kind === 'person' ? 'individual' : 'business' },
    ...{ first_name: 'Alice', last_name: kind === 'person' ? 'Example' : null, email: 'alice@example.com' },
    ...{ created_at: at, updated_at: at, has_accepted_terms_of_service: terms.status === 'approved' },
    requirements_due: snapshot.requirementsDue,
    future_requirements_due: snapshot.futureRequirementsDue,
    rejection_reasons: (verification.rejectionReasons ?? []).map((reason) => ({
      ...{ reason, developer_reason: 'not for the customer', created_at: at },
    })),
    endorsements: endorsements.map(({ name, status: own, missing }) => ({
      ...{ name, status: own },
      requirements: {
        ...{ complete: [], pending: [], issues: [] },
        missing: missing === null ? null : { all_of: [...missing] },
      },
    })),
  };
}

function accountHandlers({ bank, kinds, clock }: HandlerWorld): Record<string, Handler> {
  const stored = new Map<string, { readonly numbers: string; readonly view: { customer_id: string } }>();
  return {
    async 'POST /customers/{customerID}/external_accounts'({ ids: [customerId = ''], body, key }, status) {
      if (!kinds.has(customerId)) return notFound();
      const numbers = JSON.stringify([
        customerId,
        body.account,
        body.iban,
        body.swift,
        body.pix_key,
        body.br_code,
      ]);
      const same = [...stored].find(([, each]) => each.numbers === numbers);
      if (same !== undefined) {
        const { body: why } = refused(400, 'duplicate_external_account');
        return reply(400, { ...(why as object), id: same[0] });
      }
      const account = accountOf(body);
      const said = await bank.registerBankAccount({
        ...{ key: key!, customerId, ownerKind: kinds.get(customerId)!, ownerName: body.account_owner_name },
        ...{ bankName: body.bank_name, currency: body.currency, account },
      });
      if ('fault' in said) return refused(400, 'invalid_parameters', 'currency');
      const at = new Date(clock.now()).toISOString();
      const shown = 'account_number' in account ? { last_4: account.account_number.slice(-4) } : {};
      const view = {
        ...{ id: said.id, customer_id: customerId, created_at: at, updated_at: at, active: true },
        ...{
          account_owner_name: body.account_owner_name,
          bank_name: body.bank_name,
          currency: body.currency,
        },
        account_type: body.account_type,
        ...(body.iban === undefined ? {} : { iban: { ...shown, country: body.iban.country } }),
        ...(body.account === undefined ? {} : { account: shown }),
        ...(body.swift === undefined ? {} : { swift: {}, ...shown }),
      };
      stored.set(said.id, { numbers, view: JSON.parse(JSON.stringify(view)) });
      return reply(status, JSON.parse(JSON.stringify(view)));
    },
    async 'GET /customers/{customerID}/external_accounts/{externalAccountID}'({
      ids: [customerId, id = ''],
    }) {
      const found = stored.get(id);
      return found?.view.customer_id === customerId ? reply(200, found!.view) : notFound();
    },
    async 'DELETE /customers/{customerID}/external_accounts/{externalAccountID}'({
      ids: [customerId = '', id = ''],
    }) {
      const found = stored.get(id);
      if (found?.view.customer_id !== customerId) return notFound();
      await bank.removeBankAccount(customerId, id);
      stored.delete(id);
      return reply(200, { ...found!.view, active: false });
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: bodies were validated against the document.
function accountOf(body: any): BankAccountOrder['account'] {
  if (body.account_type === 'pix') return { type: 'pix', ...body.pix_key, ...body.br_code };
  if (body.swift !== undefined) return { type: 'swift', ...body.swift, ...body.swift.account };
  if (body.account_type === 'iban') return { type: 'iban', ...body.iban };
  return { type: body.account_type, ...body.account };
}

function depositHandlers({ bank, kinds, clock }: HandlerWorld): Record<string, Handler> {
  const terms = new Map<string, { readonly destination: object; readonly developer_fee_percent: string }>();
  const owners = new Map<string, string>();
  const events: { readonly id: string }[] = [];
  let cursor: string | undefined;
  const view = ({ id, status, currency, instructions }: VirtualAccount, customerId: string) => ({
    ...{ id, status, customer_id: customerId, created_at: new Date(clock.now()).toISOString() },
    source_deposit_instructions: { currency, ...instructions },
    ...terms.get(id),
  });
  const readNews = async (): Promise<void> => {
    const page = await bank.depositsAfter(cursor);
    cursor = page.cursor;
    for (const report of page.reports) {
      events.unshift(
        eventOf(report, owners.get(report.virtualAccountId) ?? 'unknown', `event-${events.length + 1}`),
      );
    }
    if (page.hasMore) await readNews();
  };
  return {
    async 'POST /customers/{customerID}/virtual_accounts'({ ids: [customerId = ''], body, key }, status) {
      if (!kinds.has(customerId)) return notFound();
      const { address, payment_rail, currency: asset } = body.destination;
      if (payment_rail !== 'base' || asset !== 'usdc')
        return refused(400, 'invalid_parameters', 'destination');
      const developerFeePercent = body.developer_fee_percent ?? '0';
      const said = await bank.openVirtualAccount({
        ...{ key: key!, customerId, currency: body.source.currency, developerFeePercent },
        destination: { ...testUsdc, address },
      });
      if ('fault' in said) return refused(400, 'invalid_parameters', 'source');
      // The service writes `1.0` for `1`.
      const [whole, fraction = '0'] = developerFeePercent.split('.');
      terms.set(said.id, {
        destination: body.destination,
        developer_fee_percent: `${whole}.${fraction}`,
      });
      owners.set(said.id, customerId);
      return reply(status, view(said, customerId));
    },
    async 'GET /customers/{customerID}/virtual_accounts/{virtualAccountID}'({
      ids: [customerId = '', id = ''],
    }) {
      const found = await bank.virtualAccount(customerId, id);
      return found === undefined ? notFound() : reply(200, view(found, customerId));
    },
    async 'POST /customers/{customerID}/virtual_accounts/{virtualAccountID}/deactivate'({
      ids: [customerId = '', id = ''],
    }) {
      const found = await bank.virtualAccount(customerId, id);
      if (found === undefined) return notFound();
      if (found.status === 'deactivated') return refused(400, 'already_deactivated');
      await bank.closeVirtualAccount(customerId, id);
      return reply(200, view({ ...found, status: 'deactivated' }, customerId));
    },
    async 'GET /virtual_accounts/history'({ query }) {
      await readNews();
      const limit = Number(query.get('limit') ?? 10);
      const indexOf = (name: string) => events.findIndex(({ id }) => id === query.get(name));
      const [older, newer] = [indexOf('starting_after'), indexOf('ending_before')];
      if (query.has('ending_before')) {
        if (newer === -1) return refused(400, 'invalid_parameters', 'ending_before');
        return reply(200, { data: events.slice(Math.max(0, newer - limit), newer) });
      }
      const start = query.has('starting_after') ? older + 1 : 0;
      return reply(200, { count: events.length, data: events.slice(start, start + limit) });
    },
  };
}

const types = {
  ...{ received: 'funds_received', in_review: 'in_review', delivering: 'payment_submitted' },
  ...{ delivered: 'payment_processed', refunded: 'refunded' },
};

function eventOf(report: FiatDepositReport, customerId: string, id: string) {
  const { depositId, virtualAccountId, state, amount, currency, paymentRail, senderName } = report;
  return JSON.parse(
    JSON.stringify({
      ...{ id, customer_id: customerId, virtual_account_id: virtualAccountId, type: types[state] },
      ...{ amount, currency, deposit_id: depositId, created_at: new Date(report.atMs).toISOString() },
      destination_tx_hash: report.transactionHash,
      source: { payment_rail: paymentRail, sender_name: senderName },
    }),
  );
}

function transferHandlers({ bank, clock }: HandlerWorld): Record<string, Handler> {
  const opened = new Map<string, object>();
  const view = ({ id, state, paidAmount }: FiatPayout) => ({
    ...opened.get(id),
    state,
    ...(paidAmount === undefined ? {} : { receipt: { final_amount: paidAmount } }),
  });
  return {
    async 'POST /transfers'({ body, key }, status) {
      const { amount, on_behalf_of, source, destination, developer_fee = '0' } = body;
      if (source.payment_rail !== 'base' || source.currency !== 'usdc')
        return refused(400, 'unsupported_route', 'source');
      const said = await bank.openPayout({
        ...{ key: key!, customerId: on_behalf_of, bankAccountId: destination.external_account_id },
        ...{ rail: destination.payment_rail, currency: destination.currency },
        rawAmount: rawOf(amount),
        developerFeePercent: percentOf(rawOf(developer_fee), rawOf(amount)),
        source: { ...testUsdc, address: source.from_address },
      });
      if ('fault' in said) {
        const members = {
          customer: 'destination.external_account_id',
          data: 'amount',
          pair: 'destination.currency',
        };
        return refused(400, 'invalid_parameters', members[said.fault]);
      }
      const at = new Date(clock.now()).toISOString();
      opened.set(said.id, {
        ...{ id: said.id, on_behalf_of, amount, source, destination, created_at: at, updated_at: at },
        // The service writes `1.0` for `1`.
        developer_fee: developer_fee.includes('.') ? developer_fee : `${developer_fee}.0`,
        source_deposit_instructions: {
          ...{ payment_rail: source.payment_rail, currency: source.currency, amount },
          ...{ from_address: source.from_address, to_address: said.depositAddress },
        },
      });
      return reply(status, { ...opened.get(said.id), state: 'awaiting_funds' });
    },
    async 'GET /transfers/{transferID}'({ ids: [id = ''] }) {
      const found = opened.has(id) ? await bank.payout(id) : undefined;
      return found === undefined ? notFound() : reply(200, view(found));
    },
    async 'DELETE /transfers/{transferID}'({ ids: [id = ''] }) {
      const found = opened.has(id) ? await bank.payout(id) : undefined;
      if (found === undefined) return notFound();
      if (found.state !== 'awaiting_funds') return refused(400, 'invalid_state');
      await bank.cancelPayout(id);
      return reply(200, view({ ...found, state: 'canceled' }));
    },
  };
}

function rawOf(amount: string): bigint {
  const [whole, fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(testUsdc.decimals, '0'));
}

/** Returns the lowest percentage, with 18 decimals, for which the bank charges this fee. */
function percentOf(rawFee: bigint, rawAmount: bigint): string {
  const parts = (rawFee * 10n ** 20n + rawAmount - 1n) / rawAmount;
  const digits = String(parts).padStart(19, '0');
  return `${digits.slice(0, -18)}.${digits.slice(-18)}`;
}
