import { useSignal } from '@preact/signals';
import type { PolicyTrace, RecordedExchange, RecordedMessage } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { Copy, Named } from '../parts/copy.tsx';
import { DecodedItem } from '../parts/decoded-item.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { HttpStatus, Label } from '../parts/label.tsx';
import { Failure } from '../parts/states.tsx';
import { SubjectFacts } from '../parts/subject.tsx';
import type { Tab } from '../parts/tabs.tsx';
import { ExactTime } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, shortAddress } from '../texts.ts';
import { Refusal } from './refusal.tsx';
import { ReplayBox } from './replay-box.tsx';
import { signatureCheckIn } from './signature-check.ts';
import { SignatureReport } from './signature-report.tsx';

/** One request with all recorded facts. `back` is the address of the list. */
export function RequestDetail({ id, back }: { readonly id: string; readonly back: string }) {
  const { value, error, reload } = useLoaded(
    (signal) => control('getRequest', { path: { request_id: id } }, signal),
    [id],
  );
  const exchange = value.value;
  if (exchange === undefined) {
    return (
      <DetailPanel
        what="Request"
        id={id}
        back={back}
        title="Request"
        error={error.value}
        isLoading={error.value === ''}
        retry={reload}
      />
    );
  }
  const { operation, status, method, path } = exchange;
  return (
    <DetailPanel
      what="Request"
      id={id}
      back={back}
      title={
        <>
          {operation ?? 'No operation'} <HttpStatus of={status} />
        </>
      }
      sub={
        <>
          <span class="method">{method}</span> <code>{path}</code>
        </>
      }
      error={error.value}
      tabs={tabsOf(exchange)}
    />
  );
}

function tabsOf(exchange: RecordedExchange): readonly Tab[] {
  const { policy_trace: trace, signatures_sent: sent, events, transaction_ids: transactions } = exchange;
  const check = signatureCheckIn(exchange.response.body);
  const effects = events.length + transactions.length;
  return [
    { title: 'Overview', content: () => <Overview exchange={exchange} /> },
    { title: 'Request', content: () => <Message title="Request" message={exchange.request} /> },
    { title: 'Response', content: () => <Message title="Response" message={exchange.response} /> },
    ...(sent > 0 || check !== undefined
      ? [{ title: 'Signature', mark: sent, content: () => <Signatures exchange={exchange} /> }]
      : []),
    ...(trace === null
      ? []
      : [{ title: 'Policy', mark: trace.policies?.length, content: () => <Policy trace={trace} /> }]),
    ...(effects === 0
      ? []
      : [{ title: 'Effects', mark: effects, content: () => <Effects exchange={exchange} /> }]),
    { title: 'Code', content: () => <Code exchange={exchange} /> },
    { title: 'Raw', content: () => <JsonTree value={exchange} label="Recorded request" /> },
  ];
}

function Overview({ exchange }: { readonly exchange: RecordedExchange }) {
  const { received_at_ms, machine_received_at_ms, duration_ms, wallet_id, app_id, code } = exchange;
  const { signatures_sent: sent, authorized_by: keys, events, transaction_ids: transactions } = exchange;
  const { wallet, caused_by: cause } = exchange;
  const machine = `${dateAndTime(machine_received_at_ms)} UTC`;
  return (
    <>
      {isStoredResponse(exchange) && (
        <p class="note">This is the stored response of an idempotency key; nothing was executed.</p>
      )}
      <Refusal exchange={exchange} />
      <dl>
        <Fact name="Received">
          <ExactTime ms={received_at_ms} />
        </Fact>
        <Fact name="By the machine">{machine}</Fact>
        <Fact name="Took">{duration_ms} ms</Fact>
        {code !== null && (
          <Fact name="Error code">
            <a href={`/docs/errors/${code}`}>{code}</a>
          </Fact>
        )}
        {wallet === null && wallet_id !== null && (
          <Fact name="Wallet">
            <Named id={wallet_id} what="the wallet's id" />
          </Fact>
        )}
        <SubjectFacts of={exchange} />
        {cause !== null && (
          <Fact name="Started by">
            <a href={hrefOf('requests', [cause])}>the request that sent it</a>
          </Fact>
        )}
        {app_id !== null && (
          <Fact name="App">
            <Named id={app_id} what="the app's id" href={hrefOf('apps', [app_id])} />
          </Fact>
        )}
        {sent > 0 && (
          <Fact name="Signatures">
            {sent} sent, {keys.length} of them authorized it
          </Fact>
        )}
        {events.length + transactions.length > 0 && (
          <Fact name="Effects">
            {events.map(({ id, type }) => (
              <a key={id} class="item" href={hrefOf('events', [id])}>
                {type}
              </a>
            ))}
            {transactions.map((id) => (
              <a key={id} class="item" href={hrefOf('transactions', [id])}>
                transaction {shortAddress(id)}
              </a>
            ))}
          </Fact>
        )}
      </dl>
      {exchange.contract_calls.map(({ pointer, to, call }) => (
        <DecodedItem key={pointer} title={`${call.name} of ${shortAddress(to)}`} item={call} />
      ))}
      <ReplayBox key={exchange.id} id={exchange.id} operation={exchange.operation} walletId={wallet?.id} />
    </>
  );
}

/** Returns whether the response is the stored one of an earlier request with the same idempotency key. */
function isStoredResponse({ request, response }: RecordedExchange): boolean {
  return (
    response.headers.some(({ name }) => name === 'idempotent-replayed') &&
    request.headers.some(({ name }) => name.toLowerCase().endsWith('-idempotency-key'))
  );
}

function Signatures({ exchange }: { readonly exchange: RecordedExchange }) {
  const check = signatureCheckIn(exchange.response.body);
  const { signatures_sent: sent, authorized_by: keys } = exchange;
  return (
    <>
      <p>
        {sent} {sent === 1 ? 'signature' : 'signatures'} sent, {keys.length} of them authorized the request.
      </p>
      {keys.map((key) => (
        <p key={key}>
          <Label tone="good">counts</Label> <Named id={key} what="the key" />
        </p>
      ))}
      {check !== undefined && <SignatureReport check={check} />}
    </>
  );
}

function Effects({
  exchange: { events, transaction_ids: transactions },
}: {
  readonly exchange: RecordedExchange;
}) {
  return (
    <>
      <h3>Transactions</h3>
      {transactions.length === 0 && <p class="empty">None.</p>}
      <ul class="tree">
        {transactions.map((id) => (
          <li key={id}>
            <Named id={id} what="the transaction's id" href={hrefOf('transactions', [id])} />
          </li>
        ))}
      </ul>
      <h3>Events</h3>
      {events.length === 0 && <p class="empty">None.</p>}
      <ul class="tree">
        {events.map(({ id, type }) => (
          <li key={id}>
            <a href={hrefOf('events', [id])}>{type}</a> <Copy text={id} what="the event's id" />
          </li>
        ))}
      </ul>
    </>
  );
}

function Policy({ trace }: { readonly trace: PolicyTrace }) {
  // The fields of policies and the known assets are only loaded here.
  const loaded = useLoaded(async () => (await import('./policy-tree.tsx')).PolicyTree, []);
  const Tree = loaded.value.value;
  return Tree === undefined ? <Failure message={loaded.error.value} /> : <Tree trace={trace} />;
}

function Code({ exchange }: { readonly exchange: RecordedExchange }) {
  // The texts of the languages are only loaded here.
  const loaded = useLoaded(
    async () => (await import('./as-code.ts')).codeOf(exchange, location.origin),
    [exchange.id],
  );
  const chosen = useSignal(0);
  const languages = loaded.value.value;
  if (languages === undefined) return <Failure message={loaded.error.value} />;
  const [name, text] = languages[chosen.value]!;
  return (
    <section aria-label="Code">
      <div class="actions choices">
        {languages.map(([language], index) => (
          <button
            type="button"
            key={language}
            class={index === chosen.value ? 'main' : ''}
            aria-pressed={index === chosen.value}
            onClick={() => {
              chosen.value = index;
            }}
          >
            {language}
          </button>
        ))}
        <Copy text={text} what={`the code for ${name}`}>
          Copy
        </Copy>
      </div>
      <pre tabIndex={0} role="region" aria-label={`Code for ${name}`}>
        {text}
      </pre>
      <p class="quiet small">Credentials and signatures are not recorded: they are variables here.</p>
    </section>
  );
}

function Message({ title, message }: { readonly title: string; readonly message: RecordedMessage }) {
  return (
    <>
      {message.body === null ? (
        <p class="empty">{message.body_bytes === 0 ? 'No body.' : 'The body is not shown.'}</p>
      ) : (
        <JsonTree value={message.body} label={`Body of the ${title.toLowerCase()}`} />
      )}
      <h3>Headers</h3>
      <dl>
        {message.headers.map(({ name, value }, index) => (
          <Fact key={index} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </>
  );
}
