import { encode } from 'ripple-binary-codec';
import { Agent } from 'undici';
import type { Random } from '../simulation/random.ts';
import { deckOf, inLanes } from './attack.ts';
import { type HttpCase, tenantCases } from './cases.ts';
import { type Ids, sendCase } from './http-cases.ts';
import type { Notes } from './observe.ts';
import { attackersAddress } from './outsider.ts';
import type { World } from './world.ts';

const LANES = 3;
const PAUSE_MS = 25;

/** What an attacker with an app of its own has and uses. */
export interface Tenant {
  readonly ids: Ids;
  attack(how: {
    readonly notes: Notes;
    readonly random: Random;
    readonly signal: AbortSignal;
  }): Promise<void>;
  close(): Promise<void>;
}

interface Made {
  readonly id: string;
  readonly address: string;
}

const friend = 'rDTXLQ7ZKZVKz33zJbHjgVShjsBnqMBhmN';
const evil = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';

export async function startTenant(
  world: World,
  honest: Pick<Ids, 'other' | 'quorum' | 'marks'>,
): Promise<Tenant> {
  const { origin, tenant: app } = world;
  const agent = new Agent({ connect: { ca: world.ca, ...attackersAddress }, connections: 16 });
  const headers = {
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'service-app-id': app.id,
  };
  async function post(path: string, body: object): Promise<Made & { status: number }> {
    const answer = await agent.request({
      ...{ origin, path, method: 'POST', body: JSON.stringify(body) },
      headers: { ...headers, 'content-type': 'application/json' },
    });
    return { ...((await answer.body.json()) as Made), status: answer.statusCode };
  }
  const policy = await post('/v1/policies', {
    ...{ version: '1.0', name: 'no payment to evil', chain_type: 'xrpl' },
    rules: [
      { name: 'all', method: 'xrpl_signTransaction', action: 'ALLOW', conditions: [] },
      {
        ...{ name: 'evil', method: 'xrpl_signTransaction', action: 'DENY' },
        conditions: [
          {
            ...{ field_source: 'xrpl_transaction', field: 'Payment.Destination' },
            ...{ operator: 'eq', value: evil },
          },
        ],
      },
    ],
  });
  const own = await post('/v1/wallets', { chain_type: 'ethereum' });
  const guarded = await post('/v1/wallets', { chain_type: 'xrpl', policy_ids: [policy.id] });
  const endpoint = await post('/v1/webhooks', { url: 'https://hook.acme.example/' });
  for (const [what, made] of Object.entries({ policy, own, guarded, endpoint }))
    if (made.status !== 200) throw new Error(`the tenant has no ${what}: ${JSON.stringify(made)}`);
  const ids: Ids = {
    ...honest,
    ...{ app: world.honest.id, tenant: app.id, own: own.id, policy: policy.id, endpoint: endpoint.id },
  };
  /** Cases that need what was made above. */
  const cases = [...tenantCases, ...nestedPayments(guarded)];
  return {
    ids,
    async attack({ notes, random, signal }) {
      const deck = deckOf(cases, random);
      await inLanes(LANES, { signal, pauseMs: PAUSE_MS }, async () => {
        const { value } = deck.next();
        notes.attack('tenant', value.subject);
        for (const answer of await sendCase(value, { agent, origin, random, ids, headers }))
          judgeAnswer(value, answer, { ids, notes });
      });
    },
    close: () => agent.destroy(),
  };
}

function judgeAnswer(
  { subject, isForbidden = false }: HttpCase,
  { status, text, sent }: { status: number; text: string; sent: string },
  { ids, notes }: { ids: Ids; notes: Notes },
): void {
  if (status >= 500 && status !== 503)
    notes.fault('an internal error', `tenant, ${subject}: ${status} ${text} for ${sent}`);
  const mark = ids.marks.find((each) => text.includes(each));
  if (mark !== undefined)
    notes.fault('data of another tenant', `${subject}: ${mark} in ${text.slice(0, 300)}`);
  if (!isForbidden || status >= 300 || status === 0) return;
  // What was changed may be allowed.
  if (sent !== 'as it is') return;
  const isSigning = subject.startsWith('a payment');
  notes.fault(
    isSigning ? 'something unsigned was signed' : 'data of another tenant',
    `${subject}: ${status} ${text.slice(0, 300)}`,
  );
}

/** A batch of XRPL that carries what the policy denies. */
function nestedPayments({ id, address }: Made): HttpCase[] {
  const common = { Account: address, Sequence: 1, Fee: '0', SigningPubKey: '' };
  const pay = (Destination: string) => ({
    RawTransaction: { ...common, Flags: 0x40000000, TransactionType: 'Payment', Destination, Amount: '1' },
  });
  const batch = (...RawTransactions: readonly object[]) =>
    encode({ ...common, Fee: '40', Flags: 65_536, TransactionType: 'Batch', RawTransactions } as never);
  const sign = (transaction: string) => ({
    ...({ method: 'POST', path: `/v1/wallets/${id}/rpc`, isForbidden: true } as const),
    body: { method: 'xrpl_signTransaction', params: { transaction, encoding: 'hex' } },
  });
  const single = { ...common, Fee: '10', TransactionType: 'Payment', Destination: evil, Amount: '1' };
  return [
    { subject: 'a payment that is denied', ...sign(encode(single as never)) },
    { subject: 'a payment that is denied, in a batch', ...sign(batch(pay(friend), pay(evil))) },
    { subject: 'a payment that is denied, first in a batch', ...sign(batch(pay(evil), pay(friend))) },
  ];
}
