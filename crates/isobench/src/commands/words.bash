
# Bash takes words apart at `:`, `=` and `@`, which are common within isobench's values. Here those of the line up to the
# cursor are put together again where no space is between them; of what is then offered, bash gets the part behind the
# last of these characters, which is all that it replaces.
_isobench() {
    local line=${COMP_LINE:0:COMP_POINT} words=() i at=0 rest space last
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line:at}
        space=${rest%%[![:space:]]*}
        last=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || last=${rest:${#space}:${#last}}
        if [[ i -gt 0 && -z $space && ( ${words[-1]} =~ [:=@]$ || $last =~ ^[:=@] ) ]]; then
            words[-1]+=$last
        else
            words+=("$last")
        fi
        at=$((at + ${#space} + ${#last}))
    done
    local current=$2 before=
    [[ ${words[-1]} == "$last" ]] || current=${words[-1]} before=${words[-1]%"$2"}
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
    _clap_complete_isobench isobench "$current"
    [[ ${#COMPREPLY[@]} -ne 1 || ! ${COMPREPLY[0]} =~ @$ ]] || compopt -o nospace 2> /dev/null
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
