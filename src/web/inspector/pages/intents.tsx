import type { IntentResponse, IntentStatus } from '../../../generated/schemas.ts';
import { readApi, signers } from '../api.ts';
import { control } from '../control.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { SentResult, useSending } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, memberText } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

const statuses: readonly IntentStatus[] = [
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
        ? allPages((cursor) => readApi('listIntents', { query: { status, limit: 100, ...cursor } }, signal))
        : [await readApi('getIntent', { path: { intent_id: opened } }, signal)],
    [status, opened],
  );
  const intents = value.value;
  return (
    <div class="page">
      <h1>Intents</h1>
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
          Read again
        </button>
      </div>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {intents?.length === 0 && <p class="empty">No {status} intents.</p>}
      {intents?.map((intent) => (
        <Intent key={intent.intent_id} intent={intent} />
      ))}
    </div>
  );
}

function Intent({ intent }: { readonly intent: IntentResponse }) {
  const sending = useSending();
  const shown = sending.result.value?.status === 200 ? (sending.result.value.body as IntentResponse) : intent;
  const sign = (name: (typeof signers)[number]) =>
    sending.run(() =>
      control('signIntent', { path: { intent_id: intent.intent_id }, body: { sign_as: name } }),
    );
  return (
    <section class="card" aria-label={`Intent ${intent.intent_id}`}>
      <h2>
        {shown.intent_type.replaceAll('_', ' ')}: {shown.status}
      </h2>
      <p>
        {intent.intent_id}, by {intent.created_by_display_name}, until {dateAndTime(intent.expires_at)} UTC
      </p>
      {shown.authorization_details.map((party, index) => (
        <div key={index}>
          <h3>
            {party.display_name ?? 'Quorum'}: {party.threshold} of {party.members.length}
          </h3>
          <ul>
            {party.members.map((member, place) => (
              <li key={place}>{memberText(member)}</li>
            ))}
          </ul>
        </div>
      ))}
      {shown.status === 'pending' && (
        <p class="actions">
          {signers.map((name) => (
            <button type="button" key={name} disabled={sending.isRunning.value} onClick={() => sign(name)}>
              Sign as {name}
            </button>
          ))}
        </p>
      )}
      <details>
        <summary>Proposed request</summary>
        <CodeBlock value={intent.request_details} label="Proposed request" />
      </details>
      <SentResult sending={sending} />
    </section>
  );
}
