import { Activity, Download, SearchX, Trash2 } from 'lucide';
import { useEffect } from 'preact/hooks';
import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import { clock } from '../clock-feed.ts';
import { subjectText } from '../names.ts';
import { StackedBars } from '../parts/charts.tsx';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Icon } from '../parts/icon.tsx';
import { HttpStatus } from '../parts/label.tsx';
import { isRefusal } from '../parts/sent-result.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { MachineAge } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { type Filters, filterRequests, filtersIn } from '../requests/filters.ts';
import { requestsOverTime } from '../requests/over-time.ts';
import {
  deleteRequests,
  downloadArchive,
  interruption,
  requests,
  seeRequests,
} from '../requests/request-feed.tsx';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';

/** In milliseconds. A request that takes longer has a full bar. */
const LONGEST_MS = 100;
const SLOW_MS = 50;
const BAR_PX = 40;

const columns: readonly Column<RecordedRequest>[] = [
  {
    ...{ title: 'Method', width: 56, isExtra: true },
    cell: ({ method }) => <span class="method">{method}</span>,
  },
  {
    ...{ title: 'Operation', slot: 'lead' },
    cell: ({ operation, method, path }) => operation ?? `${method} ${path}`,
  },
  { title: 'Subject', width: 190, slot: 'sub', isDim: true, cell: subjectText },
  {
    ...{ title: 'Status', width: 190, openedWidth: 56, slot: 'status' },
    cell: ({ status, code }) => (
      <>
        <HttpStatus of={status} /> {code !== null && <span class="quiet small extra">{code}</span>}
      </>
    ),
  },
  { title: 'Took', width: 104, align: 'end', isExtra: true, cell: (request) => <Took request={request} /> },
  {
    ...{ title: 'Age', width: 84, align: 'end', isDim: true, slot: 'age' },
    cell: ({ machine_received_at_ms: ms, received_at_ms: sandboxMs }) => (
      <MachineAge ms={ms} sandboxMs={sandboxMs} />
    ),
  },
];

function Took({ request: { duration_ms: ms } }: { readonly request: RecordedRequest }) {
  const width = Math.max(2, Math.min(1, ms / LONGEST_MS) * BAR_PX);
  return (
    <span class="took">
      <i class={ms > SLOW_MS ? 'slow' : ''} style={{ width: `${width}px` }} />
      {ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms
    </span>
  );
}

/** The requests of the sandbox as they arrive, and the open request. */
export function Page() {
  useEffect(seeRequests, [requests.value.length]);
  const { path, query } = route.value;
  const [opened] = path;
  const filters = filtersIn(query);
  const shown = filterRequests(requests.value, filters);
  const { tab: _tab, ...kept } = query;
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All requests">
        <Heading shown={shown} recorded={requests.value.length} />
        {requests.value.length > 0 && <OverTime filters={filters} />}
        <FilterBar filters={filters} />
        <Failure message={interruption.value} />
        {shown.length === 0 ? (
          <NoRequests hasRequests={requests.value.length > 0} />
        ) : (
          <VirtualTable
            label="Requests, newest first"
            rows={shown}
            columns={columns}
            idOf={({ id }) => id}
            opened={opened}
            open={({ id }) => goTo(hrefOf('requests', [id], kept))}
            rowClass={({ status }) => (isRefusal(status) ? 'refused' : '')}
          />
        )}
      </section>
      {opened !== undefined && <Opened key={opened} id={opened} back={hrefOf('requests', [], kept)} />}
    </div>
  );
}

/** The open request. Its panel is only loaded here. */
function Opened(props: { readonly id: string; readonly back: string }) {
  const loaded = useLoaded(async () => (await import('../requests/request-detail.tsx')).RequestDetail, []);
  const Detail = loaded.value.value;
  if (Detail !== undefined) return <Detail {...props} />;
  return (
    <section class="detail" aria-label="Request">
      <Failure message={loaded.error.value} />
    </section>
  );
}

interface HeadingProps {
  /** The requests that match the filters. */
  readonly shown: readonly RecordedRequest[];
  /** The number of all requests, including those that do not match. */
  readonly recorded: number;
}

function Heading({ shown, recorded }: HeadingProps) {
  return (
    <div class="title">
      <h1>Requests</h1>
      <span class="count" role="status">
        {shown.length} {shown.length === 1 ? 'request' : 'requests'}
      </span>
      <div class="actions">
        <button
          type="button"
          class="plain"
          title="Download as HTTP Archive"
          onClick={() => void downloadArchive(shown)}
        >
          <Icon of={Download} /> HAR
        </button>
        <ConfirmButton
          question={`Delete all ${recorded} requests${shown.length < recorded ? ', also hidden ones' : ''}?`}
          icon={Trash2}
          onConfirm={() => void deleteRequests()}
        >
          Delete all
        </ConfirmButton>
      </div>
    </div>
  );
}

function OverTime({ filters }: { readonly filters: Filters }) {
  // The sandbox's clock is read every two seconds. Using it here redraws the bars, so that they keep moving.
  void clock.value;
  const newest = requests.value.at(-1)?.machine_received_at_ms ?? 0;
  const { bars, startMs, barMs } = requestsOverTime(requests.value, Math.max(Date.now(), newest));
  const barOf = (ms: string): number =>
    Math.max(0, Math.min(bars.length - 1, Math.floor((Number(ms) - startMs) / barMs)));
  const chosen: readonly [number, number] | undefined =
    filters.from === '' ? undefined : [barOf(filters.from), barOf(String(Number(filters.until) - 1))];
  return (
    <StackedBars
      label="Last 15 min, machine's clock (UTC)"
      endMark="now"
      bars={bars}
      names={[
        ['good', 'succeeded'],
        ['warn', 'refused (4xx)'],
        ['bad', 'failed (5xx)'],
      ]}
      chosen={chosen}
      choose={(range) =>
        setQuery(
          range === undefined
            ? { from: '', until: '' }
            : { from: String(startMs + range[0] * barMs), until: String(startMs + (range[1] + 1) * barMs) },
        )
      }
    />
  );
}

function FilterBar({ filters }: { readonly filters: Filters }) {
  const field = (name: keyof Filters, label: string, placeholder: string) => (
    <label>
      {label}
      <input
        type="search"
        name={name}
        value={filters[name]}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      />
    </label>
  );
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {field('text', 'Filter by operation or path', 'walletRpc')}
      {field('status', 'Status', '4xx')}
      {field('code', 'Error code', 'policy_violation')}
      {field('wallet', 'Wallet', 'name, address or id')}
    </form>
  );
}

function NoRequests({ hasRequests }: { readonly hasRequests: boolean }) {
  if (hasRequests) {
    return (
      <Empty icon={SearchX} title="No request matches the filters">
        <button
          type="button"
          onClick={() => setQuery({ text: '', status: '', code: '', wallet: '', from: '', until: '' })}
        >
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty icon={Activity} title="No requests yet">
      <span>Send one to this sandbox, and it appears here.</span>
      <a class="button" href={hrefOf('home')}>
        Show how
      </a>
    </Empty>
  );
}
