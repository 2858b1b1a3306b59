package subresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostOfMessage is how much of a message is sent: with all else, a Status must have fewer
// than 1,024 bytes. Each error has its message, and the cause, at most once.
const mostOfMessage = 600

func bad(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func status(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}}
}

func unavailable(format string, args ...any) error {
	return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf(format, args...))
}

func tooMany(message string) error {
	return status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
}

func unauthorized(err error) error {
	return status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, err.Error())
}

// missing is that there is no such path.
func missing(format string, args ...any) error {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf(format, args...))
}

// statusOf is the answer to an error. That of the API server about an object is passed on
// with the kind in the singular.
func statusOf(err error) metav1.Status {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return apierrors.NewInternalError(err).ErrStatus
	}
	return s.Status()
}

// fail answers with the error.
func fail(w http.ResponseWriter, err error) {
	s := statusOf(err)
	s.Kind, s.APIVersion = "Status", "v1"
	s.ListMeta = metav1.ListMeta{}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	if s.Message = cut(s.Message); s.Details != nil {
		d := *s.Details
		d.Causes = nil
		s.Details = &d
	}
	write(w, int(s.Code), s)
}

// failInWords answers an error with 500 and its message as text. A client that reads an answer
// as it comes, as KubeVirt's does that of guestosinfo, shows the words of no other. A client
// that takes nothing but JSON gets a Status.
func failInWords(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = w.Write([]byte(cut(err.Error())))
}

// cut shortens a message to what clients read, with what JSON writes in place of its
// characters.
func cut(m string) string {
	for len(m) > 0 {
		if b, err := json.Marshal(m); err == nil && len(b) <= mostOfMessage {
			break
		}
		_, n := utf8.DecodeLastRuneInString(m)
		m = m[:len(m)-n]
	}
	return strings.ToValidUTF8(m, "?")
}

// write answers with JSON, or with an empty body.
func write(w http.ResponseWriter, code int, answer any) {
	if answer == nil {
		w.WriteHeader(code)
		return
	}
	b, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(b)
}
