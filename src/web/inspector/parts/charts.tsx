import { useSignal } from '@preact/signals';
import { type Bar, type BarPart, BARS_HEIGHT as HEIGHT, stack, totalOf } from './bars.ts';

interface StackedBarsProps {
  readonly label: string;
  readonly bars: readonly Bar[];
  /** The names of the tones, for the legend and the table. */
  readonly names: readonly (readonly [tone: BarPart['tone'], name: string])[];
  /** The label at the end of the axis. */
  readonly endMark?: string;
  /** The first and the last chosen bar. */
  readonly chosen?: readonly [number, number] | undefined;
  /** Called with the first and the last bar when a range is chosen, and without a value when the choice is cleared. */
  readonly choose?: (range: readonly [number, number] | undefined) => void;
}

const STEP = 16;
const GAP = 3;

/** Bars of stacked parts over time. Dragging over bars chooses a range; the table behind it is for screen readers. */
export function StackedBars({ label, bars, names, endMark, chosen, choose }: StackedBarsProps) {
  const from = useSignal<number | undefined>(undefined);
  const to = useSignal<number | undefined>(undefined);
  const most = Math.max(1, ...bars.map(totalOf));
  const width = bars.length * STEP;
  const barAt = (event: PointerEvent): number => {
    const { left, width: shown } = (event.currentTarget as Element).getBoundingClientRect();
    return Math.max(0, Math.min(bars.length - 1, Math.floor(((event.clientX - left) / shown) * bars.length)));
  };
  const range: readonly [number, number] | undefined =
    from.value === undefined || to.value === undefined
      ? chosen
      : [Math.min(from.value, to.value), Math.max(from.value, to.value)];
  const end = (): void => {
    if (range !== undefined && from.value !== undefined) choose?.(range);
    from.value = undefined;
  };
  return (
    <figure>
      <figcaption>
        <span>{label}</span>
        {names.map(([tone, name]) => (
          <span key={tone} class={`key ${tone}`}>
            {name}
          </span>
        ))}
        {chosen !== undefined && (
          <button type="button" class="plain" onClick={() => choose?.(undefined)}>
            Show all
          </button>
        )}
      </figcaption>
      <svg
        class="chart bars"
        viewBox={`0 0 ${width} ${HEIGHT + 16}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerDown={(event) => {
          if (choose === undefined) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          from.value = barAt(event);
          to.value = from.value;
        }}
        onPointerMove={(event) => {
          if (from.value !== undefined) to.value = barAt(event);
        }}
        onPointerUp={end}
        onPointerCancel={end}
      >
        <rect x={0} y={0} width={width} height={HEIGHT} fill="transparent" />
        <line class="axis" x1={0} y1={HEIGHT} x2={width} y2={HEIGHT} />
        {bars.map((bar, index) => (
          <g key={bar.title}>
            <title>{`${bar.title}: ${totalOf(bar)}`}</title>
            {stack(bar.parts, most).map(({ tone, y, height }) => (
              <rect
                key={tone}
                class={tone}
                x={index * STEP + GAP / 2}
                y={y}
                width={STEP - GAP}
                height={height}
              />
            ))}
          </g>
        ))}
        {range !== undefined && (
          <rect
            class="brush"
            x={range[0] * STEP}
            y={0}
            width={(range[1] - range[0] + 1) * STEP}
            height={HEIGHT}
          />
        )}
      </svg>
      <div class="bars-axis" aria-hidden="true">
        {bars.map(
          ({ title, mark }, index) =>
            mark !== undefined && (
              <span key={title} style={{ left: `${(index / bars.length) * 100}%` }}>
                {mark}
              </span>
            ),
        )}
        {endMark !== undefined && <span class="end">{endMark}</span>}
      </div>
      <table class="hidden">
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {names.map(([tone, name]) => (
              <th scope="col" key={tone}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {bars.map(
            (bar) =>
              totalOf(bar) > 0 && (
                <tr key={bar.title}>
                  <th scope="row">{bar.title}</th>
                  {names.map(([tone]) => (
                    <td key={tone}>{bar.parts.find((part) => part.tone === tone)?.count ?? 0}</td>
                  ))}
                </tr>
              ),
          )}
        </tbody>
      </table>
    </figure>
  );
}
