import { PenLine } from 'lucide';
import type { IntentAuthorizationMember, IntentResponse, IntentStatus } from '../../../generated/schemas.ts';
import { readApi, signers } from '../api.ts';
import { control } from '../control.ts';
import { inWords } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Seats, Status } from '../parts/label.tsx';
import { SentResult, useSending } from '../parts/sent-result.tsx';
import { Empty, Failure, Skeleton } from '../parts/states.tsx';
import { Age } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { memberText } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

const statuses: readonly (IntentStatus | 'all')[] = [
  'all',
  'pending',
  'processing',
  'executed',
  'failed',
  'expired',
  'rejected',
  'dismissed',
];

/** Intents by status, and the members whose signatures are missing. */
export function Page() {
  const { path, query } = route.value;
  const [opened] = path;
  const status = statuses.find((each) => each === query.status) ?? 'pending';
  const { value, error, reload } = useLoaded(
    async (signal) =>
      opened === undefined
        ? allPages((cursor) => {
            const wanted = status === 'all' ? {} : { status };
            return readApi('listIntents', { query: { ...wanted, limit: 100, ...cursor } }, signal);
          })
        : [await readApi('getIntent', { path: { intent_id: opened } }, signal)],
    [status, opened],
  );
  const connection = useLoaded((signal) => control('getConnection', {}, signal), []);
  const keyNames = new Map(
    connection.value.value?.signers.map(({ name, public_key: key }) => [key, inWords(name)]),
  );
  const intents = value.value;
  return (
    <div class="page">
      <div class="title">
        <h1>Intents</h1>
      </div>
      {opened !== undefined && (
        <p>
          <a class="back" href={hrefOf('intents')}>
            All intents
          </a>
        </p>
      )}
      <div class="fields">
        <label hidden={opened !== undefined}>
          Status
          <select value={status} onChange={({ currentTarget }) => setQuery({ status: currentTarget.value })}>
            {statuses.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={reload}>
          Refresh
        </button>
      </div>
      <Failure message={error.value} retry={reload} />
      {intents === undefined && error.value === '' && <Skeleton />}
      {intents?.length === 0 && (
        <Empty icon={PenLine} title={status === 'all' ? 'No intents' : `No ${status} intents`}>
          <span>
            An intent waits for the signatures of a quorum. Choose another status to see older ones.
          </span>
        </Empty>
      )}
      {intents?.map((intent) => (
        <Intent key={intent.intent_id} intent={intent} keyNames={keyNames} />
      ))}
    </div>
  );
}

function Intent({
  intent,
  keyNames,
}: {
  readonly intent: IntentResponse;
  readonly keyNames: ReadonlyMap<string, string>;
}) {
  const sending = useSending();
  const shown = sending.result.value?.status === 200 ? (sending.result.value.body as IntentResponse) : intent;
  const sign = (name: (typeof signers)[number]) =>
    sending.run(() =>
      control('signIntent', { path: { intent_id: intent.intent_id }, body: { sign_as: name } }),
    );
  return (
    <section class="card" aria-label={`Intent ${intent.intent_id}`}>
      <h2>
        {inWords(shown.intent_type)} <Status of={shown.status} />
      </h2>
      <div class="quiet">
        <Named id={intent.intent_id} what="the intent's id" href={hrefOf('intents', [intent.intent_id])} /> by{' '}
        {intent.created_by_display_name}, expires <Age ms={intent.expires_at} />
      </div>
      {shown.authorization_details.map((party, index) => (
        <div key={index}>
          <h3>
            {party.display_name ?? 'Quorum'}{' '}
            <Seats
              size={party.members.length}
              threshold={party.threshold}
              taken={party.members.filter(hasSigned).length}
            />
          </h3>
          <Timeline
            label="Members"
            steps={party.members.map((member) => ({
              title: memberText(member, keyNames),
              tone: hasSigned(member) ? ('good' as const) : ('next' as const),
            }))}
          />
        </div>
      ))}
      {shown.status === 'pending' && (
        <div class="actions">
          {signers.map((name) => (
            <button type="button" key={name} disabled={sending.isRunning.value} onClick={() => sign(name)}>
              Sign as {name}
            </button>
          ))}
        </div>
      )}
      <details>
        <summary>Proposed request</summary>
        <JsonTree value={intent.request_details} label="Proposed request" />
      </details>
      <SentResult sending={sending} />
    </section>
  );
}

function hasSigned(member: IntentAuthorizationMember): boolean {
  return member.type === 'key_quorum' ? member.threshold_met : member.signed_at !== null;
}
