import { useSignal } from '@preact/signals';
import { CircleCheck, CircleDashed, Play, ShieldCheck, TriangleAlert } from 'lucide';
import { useEffect } from 'preact/hooks';
import type { RecordedRequest, SandboxConnection } from '../../../sandbox/generated/schemas.ts';
import { absence, clock } from '../clock-feed.ts';
import { control } from '../control.ts';
import { inWords } from '../names.ts';
import { StackedBars } from '../parts/charts.tsx';
import { Copy } from '../parts/copy.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { HttpStatus, Label } from '../parts/label.tsx';
import { Prose } from '../parts/prose.tsx';
import { isRefusal } from '../parts/sent-result.tsx';
import { Empty, Failure, Skeleton } from '../parts/states.tsx';
import { Age, MachineAge } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { quickActions } from '../quick-actions.ts';
import { requestsOverTime } from '../requests/over-time.ts';
import { interruption, requests } from '../requests/request-feed.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime } from '../texts.ts';

const MAX_REFUSALS = 5;
const MAX_UPCOMING = 5;
/** The upcoming events are read again whenever the sandbox's clock has moved by this much. */
const UPCOMING_MS = 10_000;

/** Scrolls to a part of the page, and moves the focus there. */
function jumpTo(name: string): void {
  const part = document.querySelector<HTMLElement>(`section[aria-label="${name}"]`);
  part?.setAttribute('tabindex', '-1');
  part?.scrollIntoView();
  part?.focus({ preventScroll: true });
}

/**
 * The state of the sandbox at a glance: health, connection, first steps, latest refusals, upcoming events, and quick
 * actions.
 */
export function Page() {
  const connection = useLoaded((signal) => control('getConnection', {}, signal), []);
  const hasSigned = requests.value.some(isSigning);
  return (
    <div class="page">
      <div class="title">
        <h1>Home</h1>
        {absence.value === '' ? (
          <Label tone="good">Healthy</Label>
        ) : (
          <Label tone="bad">No response: {absence.value}</Label>
        )}
        {connection.value.value !== undefined && (
          <span class="quiet">version {connection.value.value.version}</span>
        )}
      </div>
      <nav class="jump" aria-label="Parts of this page">
        {['Connect', 'Quick actions', 'Next on the clock'].map((name) => (
          <button type="button" key={name} onClick={() => jumpTo(name)}>
            {name}
          </button>
        ))}
      </nav>
      <Failure message={interruption.value || connection.error.value} />
      <div class="columns">
        <div>
          {!hasSigned && <FirstSteps />}
          {requests.value.length > 0 && <Traffic />}
          <Refusals />
          <section class="card" aria-label="Connect">
            <h2>Connect</h2>
            {connection.value.value === undefined ? (
              <Skeleton lines={5} />
            ) : (
              <Connect connection={connection.value.value} />
            )}
          </section>
        </div>
        <div>
          <QuickActions />
          <Upcoming />
          {connection.value.value !== undefined && <Keys connection={connection.value.value} />}
        </div>
      </div>
    </div>
  );
}

/** Returns whether a request has made a signature. */
function isSigning({ operation, status }: RecordedRequest): boolean {
  return status === 200 && (operation === 'walletRpc' || operation === 'rawSignWallet');
}

/** The three steps to the first signed message, ticked off as the requests arrive. */
function FirstSteps() {
  const all = requests.value;
  const steps: readonly (readonly [boolean, string, string])[] = [
    [
      all.some(({ status }) => status > 0),
      'Send a request',
      'Copy one of the forms under “Connect” into your terminal, or point your client at the base URL.',
    ],
    [
      all.some(({ operation, status }) => operation === 'createWallet' && status === 200),
      'Create a wallet',
      'POST /v1/wallets with {"chain_type": "ethereum"}, or press “Create a wallet”.',
    ],
    [
      all.some(isSigning),
      'Sign a message',
      'POST /v1/wallets/{wallet_id}/rpc with personal_sign, or press “Sign a message as Alice”.',
    ],
  ];
  return (
    <section class="card" aria-label="First steps">
      <h2>Three steps to a signed message</h2>
      <ol class="ticks">
        {steps.map(([isDone, title, how]) => (
          <li key={title} class={isDone ? 'done' : ''}>
            <Icon of={isDone ? CircleCheck : CircleDashed} />
            <div>
              <strong>{title}</strong>
              <span class="hidden">{isDone ? ' (done)' : ' (to do)'}</span>
              <div class="quiet">{how}</div>
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Traffic() {
  // The sandbox's clock is read every two seconds. Using it here redraws the bars, so that they keep moving.
  void clock.value;
  const newest = requests.value.at(-1)?.machine_received_at_ms ?? 0;
  const { bars, startMs, barMs } = requestsOverTime(requests.value, Math.max(Date.now(), newest));
  return (
    <section class="card" aria-label="Traffic">
      <h2>
        Requests <a href={hrefOf('requests')}>All {requests.value.length}</a>
      </h2>
      <StackedBars
        label="Last 15 min, machine's clock (UTC)"
        endMark="now"
        bars={bars}
        names={[
          ['good', 'succeeded'],
          ['warn', 'refused (4xx)'],
          ['bad', 'failed (5xx)'],
        ]}
        choose={(range) => {
          if (range === undefined) return;
          const [from, until] = [startMs + range[0] * barMs, startMs + (range[1] + 1) * barMs];
          goTo(hrefOf('requests', [], { from: String(from), until: String(until) }));
        }}
      />
    </section>
  );
}

function Refusals() {
  const refused = requests.value
    .filter(({ status }) => isRefusal(status))
    .slice(-MAX_REFUSALS)
    .reverse();
  return (
    <section class="card" aria-label="Last refusals">
      <h2>Last refusals</h2>
      {refused.length === 0 ? (
        <Empty icon={ShieldCheck} title="Nothing was refused">
          <span>A refused request appears here with its reason.</span>
        </Empty>
      ) : (
        <ul class="lines">
          {refused.map((request) => (
            <li key={request.id}>
              <div>
                <a href={hrefOf('requests', [request.id])}>
                  {request.operation ?? `${request.method} ${request.path}`}
                </a>{' '}
                <HttpStatus of={request.status} /> <span class="quiet">{request.code}</span>
                <span class="when">
                  <MachineAge ms={request.machine_received_at_ms} sandboxMs={request.received_at_ms} />
                </span>
              </div>
              {request.hint !== null && <Prose text={request.hint} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Connect({ connection }: { readonly connection: SandboxConnection }) {
  // The texts of the languages are loaded after the page.
  const loaded = useLoaded(
    async () => (await import('../connect.ts')).connectionTexts(connection),
    [connection.base_url],
  );
  const chosen = useSignal(0);
  const texts = loaded.value.value ?? [];
  const [name = '', text = ''] = texts[chosen.value] ?? [];
  return (
    <>
      <dl>
        <Fact name="Base URL">
          <code>{connection.base_url}</code> <Copy text={connection.base_url} what="the base URL" />
        </Fact>
        <Fact name="App id">
          <code>{connection.app_id}</code> <Copy text={connection.app_id} what="the app id" />
        </Fact>
        <Fact name="App secret">
          <code>••••••••</code> <Copy text={connection.app_secret} what="the app secret" />
        </Fact>
        {connection.ca_file !== null && (
          <Fact name="Certificate">
            <code>{connection.ca_file}</code> <Copy text={connection.ca_file} what="the certificate's file" />
          </Fact>
        )}
      </dl>
      <div class="actions choices">
        {texts.map(([title], index) => (
          <button
            type="button"
            key={title}
            class={index === chosen.value ? 'main' : ''}
            aria-pressed={index === chosen.value}
            onClick={() => {
              chosen.value = index;
            }}
          >
            {title}
          </button>
        ))}
        <Copy text={text} what={`the ${name} form`}>
          Copy
        </Copy>
      </div>
      <pre tabIndex={0} role="region" aria-label={`Connection for ${name}`}>
        {text.replaceAll(connection.app_secret, '••••••••')}
      </pre>
    </>
  );
}

function QuickActions() {
  const note = useSignal('');
  const isRunning = useSignal(false);
  const press = async (run: (typeof quickActions)[number]['run']): Promise<void> => {
    isRunning.value = true;
    try {
      const { text, href } = await run();
      note.value = text;
      if (href !== undefined) goTo(href);
    } catch (error) {
      note.value = (error as Error).message;
    } finally {
      isRunning.value = false;
    }
  };
  return (
    <section class="card" aria-label="Quick actions">
      <h2>Quick actions</h2>
      <div class="quick">
        {quickActions.map(({ title, run }) => (
          <button type="button" key={title} disabled={isRunning.value} onClick={() => press(run)}>
            <Icon of={Play} /> {title}
          </button>
        ))}
      </div>
      <p role="status">{note.value}</p>
    </section>
  );
}

function Upcoming() {
  const { value, error, reload } = useLoaded(
    (signal) => control('listUpcoming', { query: { limit: MAX_UPCOMING } }, signal),
    [],
  );
  useEffect(reload, [Math.floor((clock.value?.now_ms ?? 0) / UPCOMING_MS)]);
  return (
    <section class="card" aria-label="Next on the clock">
      <h2>
        Next on the clock <a href={hrefOf('clock')}>Clock</a>
      </h2>
      {clock.value !== undefined && (
        <p>
          {dateAndTime(clock.value.now_ms).slice(0, 19)} UTC{' '}
          <Label tone={clock.value.frozen ? 'info' : 'good'}>
            {clock.value.frozen ? 'frozen' : 'running'}
          </Label>
        </p>
      )}
      <Failure message={error.value} />
      {value.value?.data.length === 0 && <p class="empty">Nothing is planned.</p>}
      <ul class="lines">
        {value.value?.data.map(({ at_ms: atMs, kind, resource_id: id }) => (
          <li key={`${kind} ${id}`}>
            {inWords(kind)}
            <span class="when">
              <Age ms={atMs} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Keys({ connection: { signers, rpc_urls: urls } }: { readonly connection: SandboxConnection }) {
  return (
    <section class="card" aria-label="Seeded people and nodes">
      <h2>Seeded people</h2>
      <ul class="lines">
        {signers.map(({ name, public_key: key }) => (
          <li key={name}>
            {inWords(name)} <span class="quiet">P-256 key</span>
            <span class="when">
              <code>…{key.slice(-12)}</code> <Copy text={key} what={`the public key of ${name}`} />
            </span>
          </li>
        ))}
      </ul>
      {urls.length > 0 && (
        <details>
          <summary>JSON-RPC of {urls.length} chains</summary>
          <ul class="lines">
            {urls.map(({ chain, url }) => (
              <li key={chain}>
                {inWords(chain)}
                <span class="when">
                  <Copy text={url} what={`the URL of ${chain}`} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {signers.length === 0 && (
        <p class="empty">
          <Icon of={TriangleAlert} /> Without a seed, the keys of this run are its own.
        </p>
      )}
    </section>
  );
}
