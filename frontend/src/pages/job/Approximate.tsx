/** A mark at results of which some are missing. */
import classes from './Approximate.module.css';

export function Approximate() {
  return (
    <span className={classes.mark} title="Tuples were shed, so results are missing, and sums over them are too small">
      approximate
    </span>
  );
}
