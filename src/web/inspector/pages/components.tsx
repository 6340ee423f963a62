import { useSignal } from '@preact/signals';
import { Wallet } from 'lucide';
import { flowOf } from '../money-flow.ts';
import type { Tone } from '../names.ts';
import { StackedBars } from '../parts/charts.tsx';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Copy, Named } from '../parts/copy.tsx';
import { Fact } from '../parts/fact.tsx';
import { Flow } from '../parts/flow.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, HttpStatus, Label, Seats, Status } from '../parts/label.tsx';
import { Prose } from '../parts/prose.tsx';
import { Empty, Failure, Skeleton } from '../parts/states.tsx';
import { Age } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';

const tones: readonly Tone[] = ['good', 'warn', 'bad', 'info', 'none'];
const HOUR_MS = 3_600_000;
const address = '0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

interface Row {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

const rows: readonly Row[] = ['confirmed', 'pending', 'failed', 'expired'].map((status, index) => ({
  ...{ id: String(index), name: `Row ${index}`, status },
}));

const columns: readonly Column<Row>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  { title: 'Status', width: 120, slot: 'status', cell: ({ status }) => <Status of={status} /> },
];

/** Every part of the inspector in every state, for those who change its style. */
export function Page() {
  const chosen = useSignal<readonly [number, number] | undefined>(undefined);
  const opened = useSignal<string | undefined>(undefined);
  const nowMs = Date.now();
  return (
    <div class="page">
      <div class="title">
        <h1>Components</h1>
      </div>
      <div class="cards">
        <section class="card" aria-label="Labels">
          <h2>Labels</h2>
          <p>
            {tones.map((tone) => (
              <span key={tone}>
                <Label tone={tone}>{tone}</Label>{' '}
              </span>
            ))}
          </p>
          <p>
            <HttpStatus of={200} /> <HttpStatus of={404} /> <HttpStatus of={503} /> <HttpStatus of={0} />
          </p>
          <p>
            <Chain id="eip155:8453" /> <Chain id="solana" /> <Chain id="tron" /> <Chain id="eip155:31337" />
          </p>
          <p>
            <Seats size={3} threshold={2} taken={1} /> <Seats size={1} threshold={1} taken={1} />
          </p>
        </section>
        <section class="card" aria-label="Names">
          <h2>Names</h2>
          <dl>
            <Fact name="Shortened">
              <Named id={address} what="the address" />
            </Fact>
            <Fact name="With a name">
              <Named id={address} what="the address">
                Alice
              </Named>
            </Fact>
            <Fact name="Age">
              <Age ms={nowMs - HOUR_MS} />
            </Fact>
          </dl>
          <Prose text="A sentence with a `name` in it." />
        </section>
        <section class="card" aria-label="Buttons">
          <h2>Buttons</h2>
          <div class="actions">
            <button type="button" class="main">
              Main
            </button>
            <button type="button">Other</button>
            <button type="button" disabled>
              Disabled
            </button>
            <button type="button" class="plain">
              Plain
            </button>
            <ConfirmButton question="Delete it?" onConfirm={() => undefined}>
              Delete
            </ConfirmButton>
            <Copy text="text" what="a text">
              Copy
            </Copy>
          </div>
        </section>
        <section class="card" aria-label="States">
          <h2>States</h2>
          <Skeleton lines={3} />
          <Failure message="The sandbox does not respond." retry={() => undefined} />
          <Empty icon={Wallet} title="No wallets yet">
            <button type="button">Create a wallet</button>
          </Empty>
        </section>
        <section class="card" aria-label="Progress">
          <h2>Progress</h2>
          <Timeline
            label="Steps"
            steps={[
              { title: 'Signed', tone: 'good', atMs: nowMs - 2 * HOUR_MS },
              { title: 'Delayed', tone: 'warn', atMs: nowMs - HOUR_MS, note: 'The fee was too low.' },
              { title: 'Reverted', tone: 'bad', atMs: nowMs },
              { title: 'Final', tone: 'next' },
            ]}
          />
        </section>
        <section class="card" aria-label="Pictures">
          <h2>Pictures</h2>
          <StackedBars
            label="Bars"
            bars={Array.from({ length: 30 }, (_, bar) => ({
              title: String(bar),
              parts: [
                { tone: 'good', count: (bar * 7) % 12 },
                { tone: 'warn', count: bar % 5 },
                { tone: 'bad', count: bar % 11 === 0 ? 3 : 0 },
              ],
            }))}
            names={[
              ['good', 'succeeded'],
              ['warn', 'refused'],
              ['bad', 'failed'],
            ]}
            chosen={chosen.value}
            choose={(range) => {
              chosen.value = range;
            }}
          />
          <Flow
            label="Flow"
            flow={flowOf({
              given: '700',
              minted: '300',
              held: { accounts: '600', pools: '250', fees: '150' },
            })}
            amountText={String}
          />
        </section>
        <section class="card" aria-label="Tree">
          <h2>JSON</h2>
          <JsonTree value={{ id: 'w1', owner: null, policies: ['p1'], worth: 12.5 }} label="Example" />
        </section>
        <section class="card" aria-label="Rows">
          <h2>Rows</h2>
          <VirtualTable
            label="Example rows"
            rows={rows}
            columns={columns}
            idOf={({ id }) => id}
            opened={opened.value}
            open={({ id }) => {
              opened.value = id;
            }}
          />
        </section>
      </div>
    </div>
  );
}
