import { type FlowEnd, type MoneyFlow, spread } from '../money-flow.ts';

const WIDTH = 440;
const BAR = 12;
const GAP = 6;
const LABEL = 116;
const LABEL_HEIGHT = 30;

interface FlowProps {
  readonly label: string;
  readonly flow: MoneyFlow;
  /** Formats an amount in base units. */
  readonly amountText: (amount: bigint) => string;
}

const tones = ['accent', 'info', 'good', 'warn', 'none', 'bad'] as const;

/** Money from its sources on the left to its holders on the right (a Sankey diagram), and the table behind it. */
export function Flow({ label, flow, amountText }: FlowProps) {
  const { sources, holders, bands } = flow;
  const height = Math.max(72, Math.max(sources.length, holders.length) * 44);
  const gaps = Math.max(sources.length, holders.length, 1) - 1;
  const inner = height - gaps * GAP;
  const yOf = (all: readonly FlowEnd[], name: string, share: number): number =>
    share * inner + all.findIndex((each) => each.name === name) * GAP;
  const labelsOf = (all: readonly FlowEnd[]): readonly number[] =>
    spread(
      all.map(({ name, from, to }) => yOf(all, name, (from + to) / 2)),
      { height, each: LABEL_HEIGHT },
    );
  const labels = { sources: labelsOf(sources), holders: labelsOf(holders) };
  const [left, right] = [LABEL + BAR, WIDTH - LABEL - BAR];
  const middle = (left + right) / 2;
  return (
    <figure>
      <svg class="chart flow" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={label}>
        {bands.map(({ source, holder, from, to }) => {
          const [a, b] = [yOf(sources, source, from), yOf(sources, source, to)];
          const [c, d] = [yOf(holders, holder, from), yOf(holders, holder, to)];
          const path = [
            `M${left} ${a} C${middle} ${a} ${middle} ${c} ${right} ${c}`,
            `L${right} ${d} C${middle} ${d} ${middle} ${b} ${left} ${b} Z`,
          ].join(' ');
          const tone = tones[holders.findIndex((each) => each.name === holder) % tones.length]!;
          return <path key={`${source} ${holder}`} class={`band ${tone}`} d={path} />;
        })}
        {sources.map(({ name, amount, from, to }, index) => (
          <g key={name}>
            <rect
              class="none"
              x={LABEL}
              y={yOf(sources, name, from)}
              width={BAR}
              height={Math.max(1, (to - from) * inner)}
            />
            <text x={LABEL - 8} y={labels.sources[index]! - 2} text-anchor="end">
              {name}
            </text>
            <text class="strong" x={LABEL - 8} y={labels.sources[index]! + 12} text-anchor="end">
              {amountText(amount)}
            </text>
          </g>
        ))}
        {holders.map(({ name, amount, from, to }, index) => (
          <g key={name}>
            <rect
              class={tones[index % tones.length]!}
              x={right}
              y={yOf(holders, name, from)}
              width={BAR}
              height={Math.max(1, (to - from) * inner)}
            />
            <text x={right + BAR + 8} y={labels.holders[index]! - 2}>
              {name}
            </text>
            <text class="strong" x={right + BAR + 8} y={labels.holders[index]! + 12}>
              {amountText(amount)}
            </text>
          </g>
        ))}
      </svg>
      <table class="hidden">
        <caption>{label}</caption>
        <tbody>
          {[...sources, ...holders].map(({ name, amount }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{amountText(amount)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
